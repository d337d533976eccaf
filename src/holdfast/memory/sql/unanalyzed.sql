-- Returns memories that were inserted by plain SQL and that the Indexer has not read yet.
select scope, id, owner, version, agent_id, user_id, language, embedded, type, conversation, seq, author, said_at, content
from memory where tenant_id = $1 and length is null
limit $2
