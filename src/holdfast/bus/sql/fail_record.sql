-- Counts a failed attempt at the record at a position ($7, on Kafka $8), and commits the records before it. A retry is due after $10.
update consumer_offset set
  attempts = case when position >= $7 and coalesce(broker_position >= $8, true) then attempts else 0 end + 1,
  failing_since = case when position >= $7 and coalesce(broker_position >= $8, true) then coalesce(failing_since, holdfast.now()) else holdfast.now() end,
  position = greatest(position, $7), broker_position = greatest(broker_position, $8),
  error = $9, retry_at = holdfast.now() + $10::interval, deaths = 0, on_trial = false, updated_at = holdfast.now()
where tenant_id = $1 and group_name = $2 and topic = $3 and partition = $4 and owner = $5 and epoch = $6
  and position <= $7 and coalesce(broker_position <= $8, true)
