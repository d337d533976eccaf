-- Memories that came by plain SQL and that nobody has read yet, held for whoever reads them now; others take others.
select scope, id, owner, agent_id, user_id, type, conversation, seq, author, said_at, content
from memory where tenant_id = $1 and length is null
limit $2 for update skip locked
