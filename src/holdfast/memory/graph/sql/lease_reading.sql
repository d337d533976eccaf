-- Takes the lease, unless another process has it, and returns what was read last. Nothing is read twice.
update graph_reading r set holder = $2, leased_until = holdfast.now() + $3::interval
where r.tenant_id = $1 and (r.holder is null or r.holder = $2 or r.leased_until < holdfast.now())
returning r.last_memory, r.last_chunk
