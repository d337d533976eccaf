-- Ends a command that is not finished; what it is then, and where the answer was published.
select * from holdfast.cancel_command($1, $2, $3, $4, $5)
