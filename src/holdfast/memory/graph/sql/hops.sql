-- Returns how entities are linked, given by pairs of canonical keys ($4, $5): each relation with its direction, and "" where memories name both.
-- With the memories that support it, at most $6.
select p.place::int as place, r.relation_type as type, r.source_key = p.one as forth, r.description, r.memories
from unnest($4::text[], $5::text[]) with ordinality as p (one, other, place)
cross join lateral (
  select t.relation_type, s.canonical as source_key, min(t.description) as description, (array_agg(u.memory_id order by u.memory_id))[:$6] as memories
  from unnest($2::text[], $3::uuid[]) as o (scope, owner)
  join entities s on s.tenant_id = $1 and s.scope = o.scope and s.owner = o.owner and s.canonical in (p.one, p.other)
  join relationships t on t.tenant_id = $1 and t.source_id = s.id
  join entities g on g.tenant_id = $1 and g.id = t.target_id and g.canonical = case when s.canonical = p.one then p.other else p.one end
  join relationship_sources u on u.tenant_id = $1 and u.source_id = t.source_id and u.target_id = t.target_id
    and u.relation_type = t.relation_type and u.live_until > holdfast.now()
  group by t.relation_type, s.canonical
  union all
  select '', p.one, null, (array_agg(distinct l.memory_id))[:$6]
  from unnest($2::text[], $3::uuid[]) as o (scope, owner)
  join entities s on s.tenant_id = $1 and s.scope = o.scope and s.owner = o.owner and s.canonical = p.one
  join memory_entities l on l.tenant_id = $1 and l.entity_id = s.id and l.live_until > holdfast.now()
  where exists (
    select from entities g join memory_entities k on k.tenant_id = $1 and k.entity_id = g.id and k.memory_id = l.memory_id
    where g.tenant_id = $1 and g.scope = o.scope and g.owner = o.owner and g.canonical = p.other)
  having count(*) > 0
) r
order by p.place, r.relation_type = '', r.relation_type
