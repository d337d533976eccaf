-- Gives a job back, to be continued after a pause.
select holdfast.release_ingest_job($1, $2, $3, $4, $5)
