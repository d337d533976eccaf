-- Sets a group's positions, if it has no active members. Returns done, busy or missing.
select holdfast.reset_group($1, $2, $3, $4, $5)
