-- Removes a skill.
select * from holdfast.remove_skill($1, $2, $3, $4)
