-- The state of a stream: whether it has ended, whether its lease is valid, which requests it answers, and its reader.
select s.ended_at is not null as ended, s.leased_until > holdfast.now() as alive, s.requests, s.reader from mcp_stream s
where s.tenant_id = $1 and s.session_key = $2 and s.id = $3
