-- All topics: the number of records so far, the rate per second, and when the oldest stored record was published.
-- The rate is that of each partition's last thousand records until now: one index lookup per partition, however many records there are.
select
  t.name, t.partitions, t.created_at,
  sum(p.next_offset)::bigint as records,
  sum(coalesce(least(p.next_offset, 1000) / greatest(extract(epoch from holdfast.now() - back.at), 1), 0))::float8 as per_second,
  min(first.at) as oldest
from topic t
join topic_partition p on p.tenant_id = $1 and p.topic = t.name
left join lateral (
  select r.at from record r
  where r.tenant_id = $1 and r.topic = p.topic and r.partition = p.partition and r."offset" >= p.next_offset - 1000
  order by r."offset" limit 1
) back on true
left join lateral (
  select r.at from record r where r.tenant_id = $1 and r.topic = p.topic and r.partition = p.partition order by r."offset" limit 1
) first on true
where t.tenant_id = $1
group by t.name, t.partitions, t.created_at
order by t.name
