-- The versions of the notes, newest first, in pages, because each is a whole text.
select r.version, r.operation, r.notes, r.created_at
from agent_long_term_memory m join agent_long_term_memory_revision r on r.tenant_id = $1 and r.memory_id = m.id
where m.tenant_id = $1 and m.user_id = $2 and m.agent_name = $3 and r.version < coalesce($4::int, 2147483647)
order by r.version desc limit $5
