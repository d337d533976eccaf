-- Returns the versions of a memory before $3, newest first. A memory that was never changed has no revisions, only its current version.
select version, operation, at, content, type, importance, trust, metadata
from memory_revision where tenant_id = $1 and memory_id = $2 and version < $3
union all
select m.version, 'remember', m.created_at, m.content, m.type, m.importance, m.trust, m.metadata
from memory m
where m.tenant_id = $1 and m.id = $2 and m.version < $3
  and not exists (select from memory_revision r where r.tenant_id = $1 and r.memory_id = $2)
order by version desc limit $4
