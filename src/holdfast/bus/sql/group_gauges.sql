-- Of each group and topic, across tenants or of one ($1): records that it has not read, and for how many seconds the oldest has waited.
-- $2 of them at most, by name: which are told does not change from one look to the next.
with chosen as materialized (
  select distinct tenant.name as tenant, o.tenant_id, o.group_name, o.topic
  from consumer_offset o join tenant on tenant.id = o.tenant_id
  where $1::uuid is null or o.tenant_id = $1
  order by tenant.name, o.group_name, o.topic limit $2
)
select
  chosen.tenant, chosen.group_name as "group", chosen.topic, sum(greatest(p.next_offset - o.position, 0))::bigint as lag,
  coalesce(extract(epoch from holdfast.now() - min(first.at)), 0)::float8 as age
from chosen
join consumer_offset o on o.tenant_id = chosen.tenant_id and o.group_name = chosen.group_name and o.topic = chosen.topic
join topic_partition p on p.tenant_id = o.tenant_id and p.topic = o.topic and p.partition = o.partition
left join lateral (
  select r.at from record r
  where r.tenant_id = o.tenant_id and r.topic = o.topic and r.partition = o.partition and r."offset" >= o.position and p.next_offset > o.position
  order by r."offset" limit 1
) first on true
group by chosen.tenant, chosen.group_name, chosen.topic
order by chosen.tenant, chosen.group_name, chosen.topic
