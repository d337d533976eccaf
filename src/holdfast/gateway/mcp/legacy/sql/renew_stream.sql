-- Renews the lease of the process that works on the answer on a stream.
update mcp_stream s set leased_until = holdfast.now() + $4 from set_config('synchronous_commit', 'off', true)
where s.tenant_id = $1 and s.session_key = $2 and s.id = $3
