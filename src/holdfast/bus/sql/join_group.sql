-- Renews a member's lease. Returns all live members.
select * from holdfast.join_group($1, $2, $3, $4, $5, $6)
