-- Renews the leases of runs that a process holds.
update runs r set leased_until = holdfast.now() + $4
from unnest($2::uuid[], $3::bigint[]) as held (id, token)
where r.tenant_id = $1 and r.id = any($2) and r.id = held.id and r.token = held.token and r.state = 'running'
