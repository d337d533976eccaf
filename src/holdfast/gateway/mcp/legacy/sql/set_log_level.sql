-- Sets the lowest level of the logs that a client receives.
update mcp_session s set log_level = $3 where s.tenant_id = $1 and s.key = $2
