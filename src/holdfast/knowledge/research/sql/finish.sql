-- Ends a research that this process holds. What calls in progress had reserved counts as used.
update research r set state = $4, report = $5, error = $6, finished_at = holdfast.now(), leased_until = null, holder = null, stop = false,
  tokens = r.tokens + r.reserved, cost = r.cost + r.reserved_cost, reserved = 0, reserved_cost = 0
where r.tenant_id = $1 and r.id = $2 and r.epoch = $3 and r.state = 'running'
