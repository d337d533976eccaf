-- Stores a question to a client.
insert into mcp_question (tenant_id, session_key, id)
select $1, s.key, $3 from mcp_session s where s.tenant_id = $1 and s.key = $2
