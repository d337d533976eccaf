-- Renews the leases that a process holds, and says which of them are to be stopped.
update research r set leased_until = holdfast.now() + $4::interval
from unnest($2::uuid[], $3::int[]) as held (id, epoch)
where r.tenant_id = $1 and r.id = any($2) and r.id = held.id and r.epoch = held.epoch and r.state = 'running'
returning r.id, r.stop
