-- Opens a stream of a session, and deletes its streams that ended more than `kept` ago. Returns whether the session exists.
create or replace function holdfast.open_mcp_stream(
  tenant uuid, session text, stream text, requests json, lease interval, kept interval
) returns boolean language plpgsql as $$
#variable_conflict use_column
begin
  perform set_config('synchronous_commit', 'off', true);
  with old as (
    delete from public.mcp_stream s where s.tenant_id = tenant and s.session_key = session and s.ended_at < holdfast.now() - kept returning s.id
  )
  delete from public.mcp_event e using old where e.tenant_id = tenant and e.session_key = session and e.stream = old.id;
  insert into public.mcp_stream (tenant_id, session_key, id, requests, leased_until)
  select tenant, s.key, open_mcp_stream.stream, open_mcp_stream.requests, holdfast.now() + lease from public.mcp_session s where s.tenant_id = tenant and s.key = session;
  return found;
end $$;
revoke execute on function holdfast.open_mcp_stream from public;
grant execute on function holdfast.open_mcp_stream to holdfast_app;
