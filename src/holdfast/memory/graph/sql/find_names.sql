-- Returns the canonical keys of entities whose names match, best first: $4 the key, $5 its possible upper bound as a beginning, $6 and $7 the
-- same of its reversal, $8 keys of parts of the query. An entity that only expired, superseded or buried memories name is not found.
select f.canonical, max(f.score) as score
from unnest($2::text[], $3::uuid[]) as o (scope, owner)
cross join lateral (
  (select e.id, e.canonical, 3.0::float8 as score from entities e
    where e.tenant_id = $1 and e.scope = o.scope and e.owner = o.owner and e.key = $4)
  union all
  (select e.id, e.canonical, 2.0 + length($4::text) / (1.0 + length(e.key)) from entities e
    where e.tenant_id = $1 and e.scope = o.scope and e.owner = o.owner and e.key > $4 and e.key < $5 limit 200)
  union all
  (select e.id, e.canonical, 1.0 + length($4::text) / (1.0 + length(e.key)) from entities e
    where e.tenant_id = $1 and e.scope = o.scope and e.owner = o.owner
      and reverse(e.key) collate "C" > $6 and reverse(e.key) collate "C" < $7 limit 200)
  union all
  (select e.id, e.canonical, length(e.key) / (1.0 + length($4::text)) from entities e
    where e.tenant_id = $1 and e.scope = o.scope and e.owner = o.owner and e.key = any($8) limit 200)
) f
where exists (select from memory_entities l where l.tenant_id = $1 and l.entity_id = f.id and l.live_until > holdfast.now())
group by f.canonical
order by score desc, f.canonical
limit $9
