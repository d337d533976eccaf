-- Moves a group's position, if the partition is still this member's, and only forward: a record that is committed already is not committed
-- again, so that its effect cannot happen twice, even where nobody heard of the first commit. $9: of a record that only Kafka has, it is its position there.
update consumer_offset set
  position = greatest(position, $7), broker_position = greatest(broker_position, $8),
  attempts = 0, failing_since = null, retry_at = null, error = null, deaths = 0, on_trial = false, updated_at = holdfast.now()
where tenant_id = $1 and group_name = $2 and topic = $3 and partition = $4 and owner = $5 and epoch = $6
  and case when $9 then coalesce(broker_position < $8, true) else position < $7 end
