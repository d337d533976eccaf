-- Topics by name: what tells each from one that had the name before, and how many partitions it has.
select name, id, partitions from topic where tenant_id = $1 and name = any($2)
