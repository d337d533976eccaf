-- Owns partitions that nobody alive owns, each at a new epoch; those that were had.
select * from holdfast.claim_partitions($1, $2, $3, $4, $5, $6)
