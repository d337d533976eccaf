-- Writes down that somebody calls a tool directly, or finds what came of the same call.
select * from holdfast.begin_execution($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
