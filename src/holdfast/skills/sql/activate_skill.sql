-- Activates or deactivates a skill.
select * from holdfast.activate_skill($1, $2, $3, $4, $5)
