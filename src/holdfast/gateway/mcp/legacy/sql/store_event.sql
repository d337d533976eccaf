-- Stores a message on a stream. If the server crashes, the call is lost anyway, so the commit does not wait for the disk.
insert into mcp_event (tenant_id, session_key, stream, number, message)
select $1, s.key, $3, $4, $5 from mcp_session s, set_config('synchronous_commit', 'off', true) where s.tenant_id = $1 and s.key = $2
