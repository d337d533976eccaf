-- The ids of executions of tools between two, in order.
select id from tool_executions where tenant_id = $1 and id between $2 and $3 order by id limit $4
