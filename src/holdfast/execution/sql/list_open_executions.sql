-- Executions that are running or whose outcome is unknown, newest first. They are few among many: the second condition on the status lets PostgreSQL use
-- their partial index.
select e.id, e.tool, e.tool_id, e.input_params, e.status, e.output_result, e.error, e.latency_ms, e.user_name, e.agent, e.run_id, e.step, e.key,
  e.created_at, e.finished_at, exists (
    select from tool_output o where o.tenant_id = $1 and o.execution_id = e.id) as has_output
from tool_executions e
where e.tenant_id = $1 and e.id < $2 and e.status = $4 and e.status in ('running', 'unknown')
order by e.id desc limit $3
