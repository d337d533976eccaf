-- Moves the positions on Kafka past arrivals that deliver no record (duplicates, unreadable ones), for partitions that this member still owns.
update consumer_offset o set broker_position = given.place, updated_at = holdfast.now()
from unnest($4::text[], $5::int[], $6::bigint[], $7::bigint[], $8::bigint[]) as given (topic, partition, epoch, position, place)
where o.tenant_id = $1 and o.group_name = $2 and o.owner = $3
  and o.topic = given.topic and o.partition = given.partition and o.epoch = given.epoch
  and o.position = given.position and coalesce(o.broker_position < given.place, true)
