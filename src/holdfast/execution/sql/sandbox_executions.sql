-- What ran in the sandbox for an execution of a tool, oldest first.
select id, execution_id, run_id, sandbox_type, code, environment, stdout, stderr, exit_code, reason, execution_time_ms, resource_usage, created_at
from sandbox_executions
where tenant_id = $1 and execution_id = $2
order by id
