-- Makes a topic with its counters, unless it is there; how many partitions it has.
select holdfast.create_topic($1, $2, $3)
