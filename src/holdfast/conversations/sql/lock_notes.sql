-- The notes, locked until the transaction ends: a concurrent edit waits, and then sees the result.
select notes, version, updated_at from agent_long_term_memory
where tenant_id = $1 and user_id = $2 and agent_name = $3
for update
