-- Claims a due job for the length of a lease.
select * from holdfast.claim_ingest_job($1, $2, $3, $4)
