-- Stores the cancellation of a request, unless the session already has $4 of them.
insert into mcp_cancellation (tenant_id, session_key, request)
select $1, s.key, $3 from mcp_session s
where s.tenant_id = $1 and s.key = $2
  and (select count(*) from mcp_cancellation c where c.tenant_id = $1 and c.session_key = $2) < $4
on conflict (tenant_id, session_key, request) do update set at = excluded.at
