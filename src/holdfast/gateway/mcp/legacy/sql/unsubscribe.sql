-- A client does not want to know any more when a resource changes.
update mcp_session s set subscriptions = array_remove(s.subscriptions, $3) where s.tenant_id = $1 and s.key = $2
