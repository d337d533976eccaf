-- Returns the messages of a conversation that a run answers.
select id, root, parent, seq, context_type, context_name, context_value, content, payload, state, key,
  version, revision, deleted, created_at, updated_at, form, null as native
from node where tenant_id = $1 and root = $2 and seq = any($3) and not deleted order by seq
