-- Cancels a direct call. The process that makes the call polls for this, and stops.
update tool_executions e
set status = 'cancelled', error = $3, finished_at = holdfast.now()
where e.tenant_id = $1 and e.id = $2 and e.run_id is null and e.status = 'running'
returning e.correlation_id
