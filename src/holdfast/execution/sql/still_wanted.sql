-- Those of these calls that somebody still waits for.
select id from tool_executions where tenant_id = $1 and id = any($2::uuid[]) and status <> 'cancelled'
