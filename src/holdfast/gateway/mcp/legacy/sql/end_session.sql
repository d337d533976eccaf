-- Deletes a session, with its streams and questions.
delete from mcp_session s where s.tenant_id = $1 and s.key = $2
