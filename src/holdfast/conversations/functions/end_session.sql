-- Ends a session: its conversation, and every place where it is the active one. A user ends their own; of one that is nobody's
-- they only leave; without a user it is ended whoever has it. False: there was nothing to end.
create or replace function holdfast.end_session(tenant uuid, ending_user uuid, session text) returns boolean
language plpgsql as $$
declare
  ended boolean;
begin
  update public.conversation set ended_at = coalesce(ended_at, holdfast.now())
  where tenant_id = tenant and session_id = session and (ending_user is null or user_id = ending_user);
  ended := found;
  delete from public.user_agent_active_sessions
  where tenant_id = tenant and active_session_id = session and (ended or ending_user is null or user_id = ending_user);
  return ended or found;
end $$;
revoke execute on function holdfast.end_session from public;
grant execute on function holdfast.end_session to holdfast_app;
