-- Nobody waits for the answers to these questions any more.
delete from mcp_question q where q.tenant_id = $1 and q.session_key = $2 and q.id = any($3)
