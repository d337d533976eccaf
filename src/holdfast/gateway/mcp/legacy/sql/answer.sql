-- Stores a client's answer, unless nobody asked the question or it is already answered.
update mcp_question q set answer = $4 where q.tenant_id = $1 and q.session_key = $2 and q.id = $3 and q.answer is null
