-- The next records that Kafka does not have ($1 is the relay's group), of the topics in these shares ($2), of all tenants: at most $3 records and
-- about $4 bytes. Returns a row per partition, with its records in order, as one array per column. Records that are being sent ($5 to $8: up to
-- which position, per partition) are skipped. Partitions take turns in random order.
-- The records are chosen without reading their values; only the values of the chosen ones are read.
with behind as materialized (
  select p.tenant_id, t.name as tenant, p.topic, p.partition, topic.id as topic_id, topic.partitions, held.share, held.start,
    row_number() over (order by random()) as turn, count(*) over () as number
  from topic_partition p
  join topic on topic.tenant_id = p.tenant_id and topic.name = p.topic
  join tenant t on t.id = p.tenant_id
  left join consumer_offset o on o.tenant_id = p.tenant_id and o.group_name = $1 and o.topic = p.topic and o.partition = p.partition
  left join unnest($5::uuid[], $6::text[], $7::int[], $8::bigint[]) as sent (tenant_id, topic, partition, position)
    on sent.tenant_id = p.tenant_id and sent.topic = p.topic and sent.partition = p.partition
  cross join lateral (
    select abs(hashtext(p.tenant_id::text || p.topic) % 4) as share, greatest(o.position, sent.position, 0) as start
  ) held
  where p.next_offset > held.start and held.share = any($2::int[])
), next as materialized (
  select turn, tenant_id, tenant, topic, topic_id, partition, partitions, share,
    min("offset") as first, max("offset") as last, min(at) as since, max(at) as until
  from (
    select behind.*, found.*, row_number() over fairly as rank, sum(found.bytes) over fairly - found.bytes as before
    from behind cross join lateral (
      select r."offset", r.at, r.bytes, row_number() over (order by r."offset") as place from record r
      where r.tenant_id = behind.tenant_id and r.topic = behind.topic and r.partition = behind.partition and r."offset" >= behind.start
      order by r."offset" limit greatest($3 / behind.number, 1)
    ) found
    window fairly as (order by found.place, behind.turn rows unbounded preceding)
  ) page
  where rank <= $3 and before < $4::bigint
  group by turn, tenant_id, tenant, topic, topic_id, partition, partitions, share
)
select next.tenant_id, next.tenant, next.topic, next.topic_id, next.partition, next.partitions, next.share, stored.*
from next cross join lateral (
  select array_agg("offset") as offsets, array_agg(at) as times, array_agg(id::text) as ids, array_agg(key) as keys,
    array_agg(headers) as headers, array_agg(value) as "values"
  from (
    select r."offset", r.at, r.id, r.key, r.headers, r.value from record r
    where r.tenant_id = next.tenant_id and r.topic = next.topic and r.partition = next.partition
      and r."offset" between next.first and next.last and r.at between next.since and next.until
    order by r."offset"
  ) in_order
) stored
