-- Takes redriven dead letters for delivery. Each is dead again until it is settled, so that one that kills its consumer is not delivered to
-- the next consumer.
update dead_letter set
  state = 'dead', attempts = attempts + 1, failed_at = holdfast.now(), error = 'redelivered, and its consumer did not report back'
where tenant_id = $1 and id = any($2) and state = 'redriven'
returning id
