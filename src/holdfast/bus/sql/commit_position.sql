-- Moves a group's position, if this member still owns the partition, and only forward. A record that is already committed is not committed
-- again, so that its effect cannot happen twice, even if the consumer did not learn of the first commit.
-- $9: the record is foreign (only Kafka has it), so the position on Kafka must move.
update consumer_offset set
  position = greatest(position, $7), broker_position = greatest(broker_position, $8),
  attempts = 0, failing_since = null, retry_at = null, error = null, deaths = 0, on_trial = false, updated_at = holdfast.now()
where tenant_id = $1 and group_name = $2 and topic = $3 and partition = $4 and owner = $5 and epoch = $6
  and case when $9 then coalesce(broker_position < $8, true) else position < $7 end
