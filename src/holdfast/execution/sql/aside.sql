-- The result that a worker stored with the execution that waits for it.
select o.content from tool_executions e join tool_output o on o.tenant_id = $1 and o.execution_id = e.id
where e.tenant_id = $1 and e.correlation_id = $2
