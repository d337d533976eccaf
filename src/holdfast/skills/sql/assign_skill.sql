-- Assigns a skill to an agent.
select * from holdfast.assign_skill($1, $2, $3, $4, $5, $6)
