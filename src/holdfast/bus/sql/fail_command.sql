-- An attempt at a command has failed: what became of the command, and where the answer was published.
select * from holdfast.fail_command($1, $2, $3, $4, $5, $6, $7, $8, $9)
