-- Releases partitions that this member still owns.
update consumer_offset o set owner = null, on_trial = false, updated_at = holdfast.now()
from unnest($4::text[], $5::int[], $6::bigint[]) as given (topic, partition, epoch)
where o.tenant_id = $1 and o.group_name = $2 and o.owner = $3
  and o.topic = given.topic and o.partition = given.partition and o.epoch = given.epoch
