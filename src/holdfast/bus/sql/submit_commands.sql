-- Stores commands and publishes their invocations; of each, whether it is new, and whether it is the one that was known already.
select * from holdfast.submit_commands($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
