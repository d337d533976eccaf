-- Begins a session. A user has at most `most` sessions: those that end first are deleted.
create or replace function holdfast.begin_mcp_session(
  tenant uuid, session text, person text, agent text, transport text, version text, client jsonb, lasts interval, most int
) returns void language plpgsql as $$
#variable_conflict use_column
begin
  delete from public.mcp_session s using (
    select key from public.mcp_session
    where tenant_id = tenant and user_name = person order by ends_at desc offset most - 1
  ) old
  where s.tenant_id = tenant and s.key = old.key;
  insert into public.mcp_session (tenant_id, key, user_name, agent, transport, protocol_version, client, ends_at)
  values (tenant, session, person, begin_mcp_session.agent, begin_mcp_session.transport, version, begin_mcp_session.client, holdfast.now() + lasts);
end $$;
revoke execute on function holdfast.begin_mcp_session from public;
grant execute on function holdfast.begin_mcp_session to holdfast_app;
