-- Takes commands of these skills that are due, for a worker with so many free places.
select * from holdfast.claim_commands($1, $2, $3, $4, $5, $6, $7)
