-- Deletes at most $2 expired sessions.
delete from mcp_session s
using (select key from mcp_session where tenant_id = $1 and ends_at <= holdfast.now() order by ends_at limit $2 for update skip locked) ended
where s.tenant_id = $1 and s.key = ended.key
