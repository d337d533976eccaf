-- The answers to those of these questions that are answered.
select q.id, q.answer from mcp_question q where q.tenant_id = $1 and q.session_key = $2 and q.id = any($3) and q.answer is not null
