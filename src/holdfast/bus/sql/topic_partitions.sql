-- How many partitions a topic has; none where there is no such topic.
select partitions from topic where tenant_id = $1 and name = $2
