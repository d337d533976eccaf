-- The number of partitions of a topic; no row if the topic does not exist.
select partitions from topic where tenant_id = $1 and name = $2
