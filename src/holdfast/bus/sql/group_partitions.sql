-- The partitions of these topics, and who of the group owns each at which epoch.
select p.topic, p.partition, o.owner, coalesce(o.epoch, 0) as epoch
from topic_partition p
left join consumer_offset o on o.tenant_id = $1 and o.group_name = $2 and o.topic = p.topic and o.partition = p.partition
where p.tenant_id = $1 and p.topic = any($3)
