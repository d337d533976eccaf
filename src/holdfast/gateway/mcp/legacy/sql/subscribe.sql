-- Subscribes a session to changes of a resource, unless it already has $4 subscriptions.
update mcp_session s set subscriptions = array_append(array_remove(s.subscriptions, $3), $3)
where s.tenant_id = $1 and s.key = $2 and (cardinality(s.subscriptions) < $4 or $3 = any(s.subscriptions))
