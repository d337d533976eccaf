-- Which session a user is in with an agent, so that every device of theirs goes on with the same one.
-- The session may not be a conversation yet: a client chooses its name before the first message.
create table user_agent_active_sessions (
  tenant_id uuid not null references tenant (id),
  user_id uuid not null,
  agent_name text not null,
  active_session_id text not null,
  last_active_at timestamptz not null default holdfast.now(),
  created_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, user_id, agent_name)
);
create index active_sessions_by_session on user_agent_active_sessions (tenant_id, active_session_id);
call holdfast.hold_to_tenant('user_agent_active_sessions');
