-- Ends a session: its conversation, its memories, and every place where it is the active one. A user ends their own; of one that is
-- nobody's they only leave; without a user it is ended whoever has it. False: there was nothing to end.
-- `owner` is the uuid by which its memories know the session.
drop function if exists holdfast.end_session(uuid, uuid, text);
create or replace function holdfast.end_session(tenant uuid, ending_user uuid, session text, owner uuid) returns boolean
language plpgsql as $$
declare
  ended boolean;
  left_behind boolean;
begin
  update public.conversation set ended_at = coalesce(ended_at, holdfast.now())
  where tenant_id = tenant and session_id = session and (ending_user is null or user_id = ending_user);
  ended := found;
  delete from public.user_agent_active_sessions
  where tenant_id = tenant and active_session_id = session and (ended or ending_user is null or user_id = ending_user);
  left_behind := found;
  if ended or ending_user is null then
    ended := holdfast.expire_session(tenant, owner) or ended;
  end if;
  return ended or left_behind;
end $$;
revoke execute on function holdfast.end_session from public;
grant execute on function holdfast.end_session to holdfast_app;
