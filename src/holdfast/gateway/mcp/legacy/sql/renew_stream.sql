-- Somebody still works on what a stream is the answer to.
update mcp_stream s set leased_until = holdfast.now() + $4 from set_config('synchronous_commit', 'off', true)
where s.tenant_id = $1 and s.session_key = $2 and s.id = $3
