-- Frees the runs that a process holds and leaves, for others to take at once.
update runs r set leased_until = null, holder = null, state = 'queued'
from unnest($2::uuid[], $3::bigint[]) as held (id, token)
where r.tenant_id = $1 and r.id = any($2) and r.id = held.id and r.token = held.token and r.state = 'running'
