-- Returns a piece of the file of a job.
select bytes from ingest_upload where tenant_id = $1 and job_id = $2 and piece = $3
