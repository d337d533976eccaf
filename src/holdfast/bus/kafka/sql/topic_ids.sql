-- Topics by name: the id, which differs from that of an earlier topic with the same name, and the number of partitions.
select name, id, partitions from topic where tenant_id = $1 and name = any($2)
