-- From which level on a client wants logs.
update mcp_session s set log_level = $3 where s.tenant_id = $1 and s.key = $2
