-- The notes about a user, as an agent's prompt gets them at every turn.
select notes, version, updated_at from agent_long_term_memory
where tenant_id = $1 and user_id = $2 and agent_name = $3
