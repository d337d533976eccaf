-- Returns the entities with these canonical keys: a row for each name, the name that the others are merged into first. `mentions` counts the
-- memories and chunks that name it, at most 10,000.
select e.canonical, e.id, e.scope, e.owner, e.key, e.name, e.type, e.description, e.merged_into, e.created_at, named.count as mentions
from unnest($4::text[]) as k (key) cross join unnest($2::text[], $3::uuid[]) with ordinality as o (scope, owner, place)
join entities e on e.tenant_id = $1 and e.scope = o.scope and e.owner = o.owner and e.canonical = k.key
cross join lateral (
  select count(*) as count from (
    select from memory_entities l
    where l.tenant_id = $1 and l.entity_id = e.id and l.live_until > holdfast.now() limit 10000
  ) counted
) named
order by e.canonical, e.merged_into is not null, o.place, e.key
