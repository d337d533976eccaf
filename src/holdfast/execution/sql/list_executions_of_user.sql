-- Calls of a user outside of turns, newest first; optionally of one tool.
select e.id, e.tool, e.tool_id, e.input_params, e.status, e.output_result, e.error, e.latency_ms, e.user_name, e.agent, e.run_id, e.step, e.key,
  e.created_at, e.finished_at, exists (
    select from tool_output o where o.tenant_id = $1 and o.execution_id = e.id) as has_output
from tool_executions e
where e.tenant_id = $1 and e.id < $2 and ($4::text is null or e.status = $4)
  and e.run_id is null and e.user_name = $5 and ($6::uuid is null or e.tool_id = $6)
order by e.id desc limit $3
