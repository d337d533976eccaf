-- Takes the research that waits longest, or whose holder has died. What its holder's calls had reserved counts as used: the model may have charged
-- for it. A research that is to be stopped is taken, too, so that it ends.
update research r set state = 'running', holder = $2, leased_until = holdfast.now() + $3::interval, epoch = r.epoch + 1, claims = r.claims + 1,
  tokens = r.tokens + r.reserved, cost = r.cost + r.reserved_cost, reserved = 0, reserved_cost = 0,
  started_at = coalesce(r.started_at, holdfast.now())
where r.tenant_id = $1 and r.state in ('queued', 'running') and (r.leased_until is null or r.leased_until <= holdfast.now()) and r.id = (
  select due.id from research due
  where due.tenant_id = $1 and due.state in ('queued', 'running') and (due.leased_until is null or due.leased_until <= holdfast.now())
  order by due.id limit 1 for update skip locked)
returning r.*
