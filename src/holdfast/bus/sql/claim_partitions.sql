-- Claims partitions that no live member owns, each at a new epoch. Returns the claimed ones.
select * from holdfast.claim_partitions($1, $2, $3, $4, $5, $6)
