-- Stores a result that is too large for a completion with the execution that waits for it.
insert into tool_output (tenant_id, execution_id, content_type, content)
select $1, e.id, $4, $3 from tool_executions e where e.tenant_id = $1 and e.correlation_id = $2
on conflict (tenant_id, execution_id) do update set content_type = excluded.content_type, content = excluded.content
