-- Removes a conversation with all that belongs to it alone, the memories of its session too; what its app and its user share stays.
create or replace function holdfast.remove_conversation(tenant uuid, conversation uuid) returns boolean language plpgsql as $$
declare
  session text;
begin
  delete from public.conversation c where c.tenant_id = tenant and c.id = conversation returning c.session_id into session;
  if not found then
    return false;
  end if;
  delete from public.state s where s.tenant_id = tenant and s.scope = 'session' and s.owner = conversation;
  delete from public.user_agent_active_sessions a where a.tenant_id = tenant and a.active_session_id = session;
  perform holdfast.expire_session(tenant, i.id) from public.identity i
  where i.tenant_id = tenant and i.kind = 'session' and i.name = session;
  return true;
end $$;
revoke execute on function holdfast.remove_conversation from public;
grant execute on function holdfast.remove_conversation to holdfast_app;
