-- Claims runs for the length of a lease.
select * from holdfast.take_runs($1, $2, $3, $4, $5, $6, $7, $8)
