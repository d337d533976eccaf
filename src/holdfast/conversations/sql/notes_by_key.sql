-- Whether an edit with this idempotency key was already made: a caller repeats it after a crash.
select r.version
from agent_long_term_memory m join agent_long_term_memory_revision r on r.tenant_id = $1 and r.memory_id = m.id
where m.tenant_id = $1 and m.user_id = $2 and m.agent_name = $3 and r.key = $4
