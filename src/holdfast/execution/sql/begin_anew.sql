-- A call of which nobody knew whether it took effect is made again, as a person decided.
update tool_executions e
set status = 'running', leased_until = holdfast.now() + $3::interval, correlation_id = $4, error = null, output_result = null, finished_at = null
where e.tenant_id = $1 and e.id = $2 and e.run_id is null and e.status = 'unknown'
returning e.leased_until
