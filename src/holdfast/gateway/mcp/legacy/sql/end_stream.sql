-- Ends a stream with a last message, unless it has already ended: there is only one last message.
with ended as (
  update mcp_stream s set ended_at = holdfast.now() where s.tenant_id = $1 and s.session_key = $2 and s.id = $3 and s.ended_at is null
  returning s.id
)
insert into mcp_event (tenant_id, session_key, stream, number, message)
select $1, $2, $3, $4, $5 from ended
