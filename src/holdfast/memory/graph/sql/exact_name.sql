-- Returns the canonical key of the entity with this key ($4), if a memory names it that is neither expired, superseded nor buried.
select e.canonical
from unnest($2::text[], $3::uuid[]) with ordinality as o (scope, owner, place)
join entities e on e.tenant_id = $1 and e.scope = o.scope and e.owner = o.owner and e.key = $4
where exists (select from memory_entities l where l.tenant_id = $1 and l.entity_id = e.id and l.live_until > holdfast.now())
order by o.place
limit 1
