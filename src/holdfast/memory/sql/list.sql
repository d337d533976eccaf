-- An owner's memories, the newest first: ids rise with time. Those that one agent brought in, if it is named; those that are over, if they
-- are asked for.
select id, scope, owner, agent_id, user_id, content, type, importance, trust, metadata, source, key, conversation, seq, author, said_at,
  created_at, valid_from, valid_to, expires_at, superseded_by, pinned, buried_at, embedded, access_count, last_accessed, version
from memory
where tenant_id = $1 and scope = $2 and owner = $3 and id < $4 and ($5::uuid is null or agent_id = $5)
  and ($6 or valid_to > holdfast.now() and expires_at > holdfast.now() and buried_at is null)
order by id desc limit $7
