-- Gives the stream of a session to a connection, unless a later one has it.
update mcp_session s set listener = $3 from set_config('synchronous_commit', 'off', true)
where s.tenant_id = $1 and s.key = $2 and coalesce(s.listener, '') < $3
