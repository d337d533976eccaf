-- Takes a link of a skill away.
select * from holdfast.unlink($1, $2, $3, $4, $5, $6)
