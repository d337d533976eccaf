-- The notes, held until the transaction ends: whoever edits them meanwhile waits, and then sees the outcome.
select notes, version, updated_at from agent_long_term_memory
where tenant_id = $1 and user_id = $2 and agent_name = $3
for update
