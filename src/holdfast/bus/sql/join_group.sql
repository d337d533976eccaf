-- Renews a member's lease; everyone who is there.
select * from holdfast.join_group($1, $2, $3, $4, $5, $6)
