-- Takes dead letters into hand that are to be delivered once more. Each is dead again until it is settled: one that kills its consumer
-- is not delivered to the next.
update dead_letter set
  state = 'dead', attempts = attempts + 1, failed_at = holdfast.now(), error = 'delivered once more, and not heard of since'
where tenant_id = $1 and id = any($2) and state = 'redriven'
returning id
