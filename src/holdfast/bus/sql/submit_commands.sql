-- Stores commands and publishes their invocations. Returns for each whether it is new, and whether a stored one with its id is the same.
select * from holdfast.submit_commands($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
