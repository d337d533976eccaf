-- Deletes the row of a call that did not run to its end because it asks its client first: the client makes the call again with its answers.
delete from tool_executions e where e.tenant_id = $1 and e.id = $2 and e.leased_until = $3 and e.status in ('running', 'unknown')
