-- Moves a group's positions on several partitions, as commit_position does on one. Returns how many were moved.
-- The condition on $4 repeats the join: without statistics, the join alone would read all positions of the group.
update consumer_offset o set
  position = greatest(o.position, given.position), broker_position = greatest(o.broker_position, given.broker_position),
  attempts = 0, failing_since = null, retry_at = null, error = null, deaths = 0, on_trial = false, updated_at = holdfast.now()
from unnest($4::text[], $5::int[], $6::bigint[], $7::bigint[], $8::bigint[], $9::boolean[])
  as given (topic, partition, epoch, position, broker_position, only_there)
where o.tenant_id = $1 and o.group_name = $2 and o.owner = $3 and o.topic = any($4::text[])
  and o.topic = given.topic and o.partition = given.partition and o.epoch = given.epoch
  and case when given.only_there then coalesce(o.broker_position < given.broker_position, true) else o.position < given.position end
