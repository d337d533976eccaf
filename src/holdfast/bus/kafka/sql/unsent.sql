-- The next records that Kafka has not got ($1 is the relay's group), of the topics in these shares ($2), across tenants: $3 at most, and about $4 bytes.
with behind as materialized (
  select p.tenant_id, t.name as tenant, p.topic, p.partition, topic.id as topic_id, topic.partitions, held.share,
    coalesce(o.position, 0) as start, count(*) over () as number
  from topic_partition p
  join topic on topic.tenant_id = p.tenant_id and topic.name = p.topic
  join tenant t on t.id = p.tenant_id
  cross join lateral (select abs(hashtext(p.tenant_id::text || p.topic) % 4) as share) held
  left join consumer_offset o on o.tenant_id = p.tenant_id and o.group_name = $1 and o.topic = p.topic and o.partition = p.partition
  where p.next_offset > coalesce(o.position, 0) and held.share = any($2::int[])
)
select behind.tenant, behind.topic_id, behind.partitions, behind.share, found.tenant_id, found.topic, found.partition, found."offset", found.at, found.id, found.key, found.headers, found.value
from behind cross join lateral (
  select page.*, sum(page.bytes) over (order by page."offset") - page.bytes as before
  from (
    select r.* from record r
    where r.tenant_id = behind.tenant_id and r.topic = behind.topic and r.partition = behind.partition and r."offset" >= behind.start
    order by r."offset" limit greatest($3 / behind.number, 1)
  ) page
) found
where found.before = 0 or found.before < $4::bigint / behind.number
order by found.tenant_id, found.topic, found.partition, found."offset"
limit $3
