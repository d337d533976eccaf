-- Stores the vectors of imported memories of one owner.
insert into memory_vector (tenant_id, scope, owner, memory_id, dimensions, importance, live_until, model, embedding)
select $1, m.scope, m.owner, m.id, vector_dims(v.embedding), m.importance, least(m.valid_to, m.expires_at, m.buried_at), v.model, v.embedding
from unnest($4::uuid[], $5::text[], $6::halfvec[]) as v (id, model, embedding)
join memory m on m.tenant_id = $1 and m.scope = $2 and m.owner = $3 and m.id = v.id and m.id = any($4::uuid[])
returning memory_id
