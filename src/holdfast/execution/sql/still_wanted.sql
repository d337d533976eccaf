-- Those of these executions that exist and are not cancelled.
select id from tool_executions where tenant_id = $1 and id = any($2::uuid[]) and status <> 'cancelled'
