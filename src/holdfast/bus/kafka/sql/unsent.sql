-- The next records that Kafka has not got ($1 is the relay's group), of the topics in these shares ($2), across tenants: $3 at most, and about $4 bytes.
-- What is on its way already ($5 to $8: up to where, partition by partition) is passed over. Partitions take turns that chance gives.
with behind as materialized (
  select p.tenant_id, t.name as tenant, p.topic, p.partition, topic.id as topic_id, topic.partitions, held.share, held.start,
    random() as turn, count(*) over () as number
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
)
select tenant, topic_id, partitions, share, tenant_id, topic, partition, "offset", at, id, key, headers, value
from (
  select behind.tenant, behind.topic_id, behind.partitions, behind.share, found.*,
    row_number() over fairly as rank, sum(found.bytes) over fairly - found.bytes as before
  from behind cross join lateral (
    select r.*, row_number() over (order by r."offset") as place from record r
    where r.tenant_id = behind.tenant_id and r.topic = behind.topic and r.partition = behind.partition and r."offset" >= behind.start
    order by r."offset" limit greatest($3 / behind.number, 1)
  ) found
  window fairly as (order by found.place, behind.turn rows unbounded preceding)
) page
where rank <= $3 and before < $4::bigint
order by tenant_id, topic, partition, "offset"
