-- Ends a session: its conversation, its memories, and every use of it as an active session. A user ends their own session. If the
-- conversation has no user, the user only leaves it. Without a user, it is ended for its owner, or for all if it has none.
-- `outcome`: ended, nothing (there was nothing to end), several (several users have the id, and none is named).
drop function if exists holdfast.end_session(uuid, uuid, text); -- it returned a boolean
drop function if exists holdfast.end_session(uuid, uuid, text, uuid);
create or replace function holdfast.end_session(tenant uuid, ending_user uuid, session text, out outcome text)
language plpgsql as $$
declare
  talk public.conversation;
  ended boolean := false;
begin
  if ending_user is null then
    if (select count(*) from holdfast.sessions_called(tenant, session)) > 1 then
      outcome := 'several';
      return;
    end if;
    select t.* from holdfast.sessions_called(tenant, session) t into talk;
  else
    select t.* from holdfast.session_for(tenant, session, ending_user, 'default', false) t
      where t.user_id is not null into talk;
  end if;
  if talk.id is not null then
    update public.conversation c set ended_at = coalesce(c.ended_at, holdfast.now()) where c.tenant_id = tenant and c.id = talk.id;
    ended := found;
    perform holdfast.expire_session(tenant, talk.id);
  end if;
  outcome := case when holdfast.leave_session(tenant, coalesce(ending_user, talk.user_id), session, talk.session_id) or ended
    then 'ended' else 'nothing' end;
end $$;
revoke execute on function holdfast.end_session from public;
grant execute on function holdfast.end_session to holdfast_app;

-- Makes a session inactive for a user, or for all users; returns whether it was active. `stored`: its stored name, if it has a conversation.
create or replace function holdfast.leave_session(tenant uuid, person uuid, session text, stored text) returns boolean
language plpgsql as $$
begin
  if person is null then
    delete from public.user_agent_active_sessions a where a.tenant_id = tenant and a.active_session_id = coalesce(stored, session);
  else
    delete from public.user_agent_active_sessions a
    where a.tenant_id = tenant and a.user_id = person and (a.active_session_id in (session, stored) or a.session_name = session);
  end if;
  return found;
end $$;
revoke execute on function holdfast.leave_session from public;
grant execute on function holdfast.leave_session to holdfast_app;
