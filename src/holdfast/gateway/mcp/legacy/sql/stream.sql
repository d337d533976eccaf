-- How a stream is: ended, or worked on by somebody, and what it answers.
select s.ended_at is not null as ended, s.leased_until > holdfast.now() as alive, s.requests, s.reader from mcp_stream s
where s.tenant_id = $1 and s.session_key = $2 and s.id = $3
