-- Returns what an entity, given by its canonical key, is linked to: by each stated relation, and by memories that name both (type ""). The most
-- frequent first; of memories that name it, the newest 1,000 count.
with members as materialized (
  select e.id from unnest($2::text[], $3::uuid[]) as o (scope, owner)
  join entities e on e.tenant_id = $1 and e.scope = o.scope and e.owner = o.owner and e.canonical = $4
), links as (
  select r.target_id as other, r.relation_type as type, true as forth, s.memory_id
  from members m join relationships r on r.tenant_id = $1 and r.source_id = m.id
  join relationship_sources s on s.tenant_id = $1 and s.source_id = r.source_id and s.target_id = r.target_id
    and s.relation_type = r.relation_type and s.live_until > holdfast.now()
  union all
  select r.source_id, r.relation_type, false, s.memory_id
  from members m join relationships r on r.tenant_id = $1 and r.target_id = m.id
  join relationship_sources s on s.tenant_id = $1 and s.source_id = r.source_id and s.target_id = r.target_id
    and s.relation_type = r.relation_type and s.live_until > holdfast.now()
  union all
  select k.entity_id, '', true, k.memory_id
  from members m
  cross join lateral (
    select l.memory_id from memory_entities l
    where l.tenant_id = $1 and l.entity_id = m.id and l.live_until > holdfast.now() order by l.memory_id desc limit 1000
  ) named
  join memory_entities k on k.tenant_id = $1 and k.memory_id = named.memory_id
)
select e.canonical, l.type, l.forth, count(distinct l.memory_id) as count, (array_agg(distinct l.memory_id))[:$6] as memories
from links l join entities e on e.tenant_id = $1 and e.id = l.other
where e.canonical <> $4
group by e.canonical, l.type, l.forth
order by l.type = '', count desc, e.canonical
limit $5
