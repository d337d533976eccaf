-- Owns partitions that nobody alive owns (or any, where Kafka has said whose they are: $7), each at a new epoch; those that were had.
select * from holdfast.claim_partitions($1, $2, $3, $4, $5, $6, $7)
