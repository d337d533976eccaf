-- Stores what the client says about itself, for a session that existed before `initialize`.
update mcp_session s set protocol_version = $3, client = $4 where s.tenant_id = $1 and s.key = $2
