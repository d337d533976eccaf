-- Those of these partitions ($2, $3) of which the relay has sent more than was delivered ($4 is the next offset), and the relay's position.
select asked.topic, asked.partition, o.position
from unnest($2::text[], $3::int[], $4::bigint[]) as asked (topic, partition, next)
join consumer_offset o
  on o.tenant_id = $1 and o.group_name = '.relay' and o.topic = asked.topic and o.partition = asked.partition
where o.position > asked.next
