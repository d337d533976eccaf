-- The whole output of an execution.
select content_type, content from tool_output where tenant_id = $1 and execution_id = $2
