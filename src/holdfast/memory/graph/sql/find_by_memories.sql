-- Returns the canonical keys of entities that memories ($4, with their scores $5) name: rarer ones first, of equally relevant memories. Names
-- of more than 100 memories count as if they had 100.
select e.canonical, sum(h.score * ln(2) / ln(1 + named.count)) as score
from unnest($4::uuid[], $5::float8[]) as h (memory, score)
join memory_entities l on l.tenant_id = $1 and l.memory_id = h.memory and l.live_until > holdfast.now()
join entities e on e.tenant_id = $1 and e.id = l.entity_id and (e.scope, e.owner) in (select * from unnest($2::text[], $3::uuid[]))
cross join lateral (
  select count(*)::float8 as count
  from (select from memory_entities k where k.tenant_id = $1 and k.entity_id = e.id limit 100) counted
) named
group by e.canonical
order by score desc, e.canonical
limit $6
