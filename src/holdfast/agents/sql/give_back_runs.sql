-- Releases runs that a process holds, these or all, so that others can take them at once.
update runs r set leased_until = null, holder = null, state = 'queued'
where r.tenant_id = $1 and r.state = 'running' and r.holder = $2 and ($3::uuid[] is null or r.id = any($3))
