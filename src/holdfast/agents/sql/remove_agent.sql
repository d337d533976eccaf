-- Removes an agent.
select holdfast.remove_agent($1, $2, $3)
