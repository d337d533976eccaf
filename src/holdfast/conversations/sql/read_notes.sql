-- The notes of an agent about a user, read for the agent's prompt at every turn.
select notes, version, updated_at from agent_long_term_memory
where tenant_id = $1 and user_id = $2 and agent_name = $3
