-- What the client of a session says of itself, where the session was there before.
update mcp_session s set protocol_version = $3, client = $4 where s.tenant_id = $1 and s.key = $2
