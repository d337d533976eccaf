-- Returns the memories and chunks that name an entity, given by its canonical key, the newest first, before a given id. Of each name, the index gives
-- no more than are returned.
select distinct l.memory_id, l.document_id
from unnest($2::text[], $3::uuid[]) as o (scope, owner)
join entities e on e.tenant_id = $1 and e.scope = o.scope and e.owner = o.owner and e.canonical = $4
cross join lateral (
  select l.memory_id, l.document_id from memory_entities l
  where l.tenant_id = $1 and l.entity_id = e.id and l.live_until > holdfast.now() and l.memory_id < $5
  order by l.memory_id desc limit $6
) l
order by l.memory_id desc
limit $6
