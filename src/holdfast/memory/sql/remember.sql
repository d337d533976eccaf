-- Stores memories, and returns each as stored, in the given order.
select is_new, (stored).id, (stored).agent_id, (stored).user_id, (stored).content, (stored).type, (stored).importance, (stored).trust,
  (stored).metadata, (stored).source, (stored).key, (stored).conversation, (stored).seq, (stored).author, (stored).said_at,
  (stored).created_at, (stored).valid_from, (stored).valid_to, (stored).expires_at, (stored).superseded_by, (stored).pinned,
  (stored).buried_at, (stored).embedded, (stored).access_count, (stored).last_accessed, (stored).version
from holdfast.remember($1, $2, $3, $4, $5, $6)
