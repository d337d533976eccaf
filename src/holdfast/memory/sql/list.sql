-- Returns the memories of an owner, newest first: ids grow with time. `$5`: only those stored by this agent. `$6`: also superseded, expired
-- and buried ones.
select id, scope, owner, agent_id, user_id, content, type, importance, trust, metadata, source, key, conversation, seq, author, said_at,
  created_at, valid_from, valid_to, expires_at, superseded_by, pinned, buried_at, embedded, access_count, last_accessed, version
from memory
where tenant_id = $1 and scope = $2 and owner = $3 and id < $4 and ($5::uuid is null or agent_id = $5)
  and ($6 or valid_to > holdfast.now() and expires_at > holdfast.now() and buried_at is null)
order by id desc limit $7
