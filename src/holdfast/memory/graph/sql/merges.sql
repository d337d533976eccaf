-- Returns the merges that make up an entity, given by its canonical key, the oldest first.
select m.id, m.keep_id, k.name as keep, m.other_id, r.name as other, m.memory_id, m.created_at
from unnest($2::text[], $3::uuid[]) as o (scope, owner)
join entities k on k.tenant_id = $1 and k.scope = o.scope and k.owner = o.owner and k.canonical = $4
join entity_merges m on m.tenant_id = $1 and m.keep_id = k.id and m.undone_at is null
join entities r on r.tenant_id = $1 and r.id = m.other_id
order by m.id
