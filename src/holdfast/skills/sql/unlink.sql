-- Removes a link of a skill.
select * from holdfast.unlink($1, $2, $3, $4, $5, $6)
