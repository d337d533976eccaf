-- What a person found out of a call of which nobody knew whether it took effect.
update tool_executions e
set status = $3, output_result = $4, error = $5, finished_at = holdfast.now()
where e.tenant_id = $1 and e.id = $2 and e.run_id is null and e.status = 'unknown'
