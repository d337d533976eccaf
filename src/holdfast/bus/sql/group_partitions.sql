-- The partitions of these topics, and those that Kafka has ($4, $5), each with its owner in the group and its epoch.
select p.topic, p.partition, o.owner, coalesce(o.epoch, 0) as epoch
from (
  select topic, partition from topic_partition where tenant_id = $1 and topic = any($3)
  union select topic, partition from unnest($4::text[], $5::int[]) as beside (topic, partition)
) p
left join consumer_offset o on o.tenant_id = $1 and o.group_name = $2 and o.topic = p.topic and o.partition = p.partition
