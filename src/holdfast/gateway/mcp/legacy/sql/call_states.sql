-- What has happened to requests ($3) that have run for a while ($4): whether their session is alive, which of them are cancelled,
-- and whether the client has resumed their stream ($5).
select
  exists (select from mcp_session s where s.tenant_id = $1 and s.key = $2 and s.ends_at > holdfast.now()) as alive,
  array(
    select c.request from mcp_cancellation c
    where c.tenant_id = $1 and c.session_key = $2 and c.request = any($3) and c.at > holdfast.now() - $4::interval
  ) as cancelled,
  exists (select from mcp_stream s where s.tenant_id = $1 and s.session_key = $2 and s.id = $5 and s.reader is not null) as taken_up
