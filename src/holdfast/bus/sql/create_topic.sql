-- Creates a topic with its counters, unless it exists. Returns its number of partitions.
select holdfast.create_topic($1, $2, $3)
