-- Makes a session the active one of a user with an agent, and returns the one that is active now. Returns no row if the session is one
-- of the user's with another agent, which would refuse to talk in it. `qualified`: the name to store if another user has the id, or if
-- the conversation has no user and this user may not adopt it (`adopts`). The caller cannot tell this from an id that nobody has.
-- `only_instead`: replace only the session `instead`. The row is written even if it stays the same: only then does the same statement
-- see, and return, what a concurrent transaction has just committed.
create or replace function holdfast.activate_session(
  tenant uuid, person uuid, agent text, session text, qualified text, adopts boolean, only_instead boolean, instead text
) returns table (session_id text, last_active_at timestamptz, created_at timestamptz) language plpgsql as $$
#variable_conflict use_column
declare
  talk public.conversation;
  stored text := session;
begin
  select t.* from holdfast.session_for(tenant, session, person, 'default', adopts) t into talk;
  if talk.id is not null then
    if talk.agent_name <> agent then
      return;
    end if;
    stored := talk.session_id;
  elsif session ^@ 'adk:' or exists (
    select from public.conversation c where c.tenant_id = tenant and c.session_id = session) then
    stored := qualified;
  end if;
  return query
    insert into public.user_agent_active_sessions as a (tenant_id, user_id, agent_name, active_session_id, session_name)
    values (tenant, person, agent, stored, case when stored <> session then session end)
    on conflict (tenant_id, user_id, agent_name) do update set
      active_session_id = case when not only_instead or coalesce(a.session_name, a.active_session_id) = instead
        then excluded.active_session_id else a.active_session_id end,
      session_name = case when not only_instead or coalesce(a.session_name, a.active_session_id) = instead
        then excluded.session_name else a.session_name end,
      last_active_at = case when not only_instead or coalesce(a.session_name, a.active_session_id) = instead
        then excluded.last_active_at else a.last_active_at end
    returning coalesce(a.session_name, a.active_session_id), a.last_active_at, a.created_at;
end $$;
revoke execute on function holdfast.activate_session from public;
grant execute on function holdfast.activate_session to holdfast_app;
