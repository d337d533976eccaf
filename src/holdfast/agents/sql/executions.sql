-- Lists the tool executions of a run in the steps after $3 up to $4.
select id, step, call_id, tool, input_params, status, token, output_result, error, latency_ms, tool_id, correlation_id from tool_executions
where tenant_id = $1 and run_id = $2 and step > $3 and step <= $4 order by step, created_at
