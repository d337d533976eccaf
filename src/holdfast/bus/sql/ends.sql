-- The end of each partition of these topics: its next offset.
select topic, partition, next_offset from topic_partition where tenant_id = $1 and topic = any($2)
