-- The number of unread records per group and topic, of one tenant ($1) or of all, and the age of the oldest in seconds.
-- At most $2 rows, by name: the same ones at every query.
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
