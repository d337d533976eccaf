-- The next records of partitions ($2, $3), each from its offset ($4): $5 of them at most, shared among those that have any, and about $6 bytes.
-- Of each partition the first comes however large it is: none gets stuck.
with ready as materialized (
  select asked.*, count(*) over () as number
  from unnest($2::text[], $3::int[], $4::bigint[]) as asked (topic, partition, start)
  join topic_partition p on p.tenant_id = $1 and p.topic = asked.topic and p.partition = asked.partition and p.next_offset > asked.start
)
select found.topic, found.partition, found."offset", found.at, found.id, found.key, found.headers, found.value
from ready cross join lateral (
  select page.*, sum(page.bytes) over (order by page."offset") - page.bytes as before
  from (
    select r.* from record r
    where r.tenant_id = $1 and r.topic = ready.topic and r.partition = ready.partition and r."offset" >= ready.start
    order by r."offset" limit greatest($5 / ready.number, 1)
  ) page
) found
where found.before = 0 or found.before < $6::bigint / ready.number
order by found.topic, found.partition, found."offset"
