-- Stores the cancellation of a request, if its session still exists.
insert into mcp_cancellation (tenant_id, session_key, request)
select $1, s.key, $3 from mcp_session s
where s.tenant_id = $1 and s.key = $2
on conflict (tenant_id, session_key, request) do update set at = excluded.at
