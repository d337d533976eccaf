-- Deletes questions whose answers nobody waits for.
delete from mcp_question q where q.tenant_id = $1 and q.session_key = $2 and q.id = any($3)
