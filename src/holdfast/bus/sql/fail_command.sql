-- Fails an attempt at a command. Returns the outcome for the command, and the topic on which an answer was published.
select * from holdfast.fail_command($1, $2, $3, $4, $5, $6, $7, $8, $9)
