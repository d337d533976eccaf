-- Stores what ran in the sandbox. The execution of a call in a run is found by the call: its process knows no other id.
insert into sandbox_executions (tenant_id, id, execution_id, run_id, sandbox_type, code, environment, stdout, stderr, exit_code, reason, execution_time_ms, resource_usage)
values ($1, $2, (
    select e.id from tool_executions e
    where e.tenant_id = $1 and case when $4::uuid is null then e.id = $3 else e.run_id = $4 and e.call_id = $5 end
    order by e.id desc limit 1
  ), $4, $6, $7, $8, $9, $10, $11, $12, $13, $14)
