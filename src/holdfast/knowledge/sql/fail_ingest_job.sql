-- Ends a job that failed.
select holdfast.fail_ingest_job($1, $2, $3, $4)
