-- Sets a group's positions, if nobody reads with it: done, busy or missing.
select holdfast.reset_group($1, $2, $3, $4, $5)
