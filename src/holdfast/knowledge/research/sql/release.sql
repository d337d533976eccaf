-- Releases the lease of a process that closes, so that another can go on at once; or later, after $4.
update research r set leased_until = holdfast.now() + $4::interval, holder = null, state = 'queued'
where r.tenant_id = $1 and r.id = $2 and r.epoch = $3 and r.state = 'running'
