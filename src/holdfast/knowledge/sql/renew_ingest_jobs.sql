-- Renews the leases of jobs, and returns those that this process still holds.
update ingest_job j set due_at = holdfast.now() + $5::interval
from unnest($3::uuid[], $4::int[]) as held (id, epoch)
where j.tenant_id = $1 and j.id = held.id and j.id = any($3::uuid[]) and j.epoch = held.epoch and j.state = 'running' and j.holder = $2
returning j.id
