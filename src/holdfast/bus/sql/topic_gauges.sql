-- The number of records so far per topic, of one tenant ($1) or of all, and the rate per second, computed as in topics.sql.
-- At most $2 topics, by name: the same ones at every query.
with chosen as materialized (
  select tenant.name as tenant, topic.tenant_id, topic.name as topic
  from topic join tenant on tenant.id = topic.tenant_id
  where $1::uuid is null or topic.tenant_id = $1
  order by tenant.name, topic.name limit $2
)
select
  chosen.tenant, chosen.topic, count(*)::int as partitions, sum(p.next_offset)::bigint as records,
  sum(coalesce(least(p.next_offset, 1000) / greatest(extract(epoch from holdfast.now() - back.at), 1), 0))::float8 as per_second
from chosen
join topic_partition p on p.tenant_id = chosen.tenant_id and p.topic = chosen.topic
left join lateral (
  select r.at from record r
  where r.tenant_id = p.tenant_id and r.topic = p.topic and r.partition = p.partition and r."offset" >= p.next_offset - 1000
  order by r."offset" limit 1
) back on true
group by chosen.tenant, chosen.topic
order by chosen.tenant, chosen.topic
