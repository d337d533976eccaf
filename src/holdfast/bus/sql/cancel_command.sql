-- Cancels a command that is not finished. Returns its state, and the topic on which the answer was published.
select * from holdfast.cancel_command($1, $2, $3, $4, $5)
