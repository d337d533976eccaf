-- Sets or removes a limit, and gives the change a revision: holdfast.set_limit
select holdfast.set_limit($1, $2, $3, $4, $5, $6)
