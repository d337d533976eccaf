-- A client has answered what it was asked; what nobody asked, or what is answered already, is no answer.
update mcp_question q set answer = $4 where q.tenant_id = $1 and q.session_key = $2 and q.id = $3 and q.answer is null
