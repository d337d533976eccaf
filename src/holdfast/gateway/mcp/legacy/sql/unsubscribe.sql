-- Unsubscribes a session from changes of a resource.
update mcp_session s set subscriptions = array_remove(s.subscriptions, $3) where s.tenant_id = $1 and s.key = $2
