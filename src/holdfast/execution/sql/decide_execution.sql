-- Stores a person's decision about a call with an unknown outcome.
update tool_executions e
set status = $3, output_result = $4, error = $5, finished_at = holdfast.now()
where e.tenant_id = $1 and e.id = $2 and e.run_id is null and e.status = 'unknown'
