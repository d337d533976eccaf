-- Makes a session the active one, and answers with the one in force; no row if the session is another user's,
-- or with another agent, which would refuse to talk in it.
-- $5: only in the place of $6. The row is written even where it stays as it is: only so is what a rival has just
-- committed seen, and given back, by the same statement.
insert into user_agent_active_sessions (tenant_id, user_id, agent_name, active_session_id)
select $1, $2::uuid, $3, $4::text
where not exists (
  select from conversation
  where tenant_id = $1 and session_id = $4::text and (user_id <> $2::uuid or agent_name <> $3)
)
on conflict (tenant_id, user_id, agent_name) do update set
  active_session_id = case when not $5::boolean or user_agent_active_sessions.active_session_id = $6::text
    then excluded.active_session_id else user_agent_active_sessions.active_session_id end,
  last_active_at = case when not $5::boolean or user_agent_active_sessions.active_session_id = $6::text
    then excluded.last_active_at else user_agent_active_sessions.last_active_at end
returning active_session_id, last_active_at, created_at
