-- The conversation that a user means by a session id: the user's own, preferably in this app; otherwise one without a user that this user
-- may adopt. With `adopts`, every user may; otherwise, only a user who is the only one with this active session.
create or replace function holdfast.session_for(tenant uuid, session text, person uuid, app text, adopts boolean)
returns setof public.conversation language plpgsql stable rows 1 as $$
begin
  return query
    select own.* from (
      select c.* from public.conversation c where c.tenant_id = tenant and c.session_id = session and c.user_id = person
      union all
      select c.* from public.conversation c where c.tenant_id = tenant and c.session_name = session and c.user_id = person
    ) own
    order by own.app_name <> app, own.session_name is not null, own.id desc limit 1;
  if found then
    return;
  end if;
  return query
    select c.* from public.conversation c
    where c.tenant_id = tenant and c.session_id = session and c.user_id is null and c.kind = 'conversation'
      and c.app_name in (app, 'default') and (adopts or holdfast.is_only_in(tenant, session, person));
end $$;
revoke execute on function holdfast.session_for from public;
grant execute on function holdfast.session_for to holdfast_app;

-- Whether a session is the active one of this user, and of no other user.
create or replace function holdfast.is_only_in(tenant uuid, session text, person uuid) returns boolean language plpgsql stable as $$
begin
  return coalesce((
    select bool_and(a.user_id = person) from public.user_agent_active_sessions a
    where a.tenant_id = tenant and a.active_session_id = session), false);
end $$;
revoke execute on function holdfast.is_only_in from public;
grant execute on function holdfast.is_only_in to holdfast_app;

-- The conversations that a session id means if the caller names no user: the one that is stored under it, otherwise those of users who
-- have the id; at most two.
create or replace function holdfast.sessions_called(tenant uuid, session text)
returns setof public.conversation language plpgsql stable rows 1 as $$
begin
  return query select c.* from public.conversation c where c.tenant_id = tenant and c.session_id = session;
  if not found then
    return query select c.* from public.conversation c where c.tenant_id = tenant and c.session_name = session limit 2;
  end if;
end $$;
revoke execute on function holdfast.sessions_called from public;
grant execute on function holdfast.sessions_called to holdfast_app;
