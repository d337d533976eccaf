-- The active session of a user with an agent.
select coalesce(session_name, active_session_id) as session_id, last_active_at, created_at from user_agent_active_sessions
where tenant_id = $1 and user_id = $2 and agent_name = $3
