-- Stores the revisions of imported memories, except for those that the session limit deleted immediately.
insert into memory_revision (tenant_id, memory_id, version, operation, at, content, type, importance, trust, metadata)
select $1, m.id, r.version, r.operation, r.at, r.content, r.type, r.importance, r.trust, r.metadata
from json_populate_recordset(null::memory_revision, $5) r
join memory m on m.tenant_id = $1 and m.scope = $2 and m.owner = $3 and m.id = r.memory_id and m.id = any($4::uuid[])
returning memory_id
