-- Where each partition of these topics ends.
select topic, partition, next_offset from topic_partition where tenant_id = $1 and topic = any($2)
