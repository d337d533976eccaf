-- Deletes an upload that was broken off.
delete from ingest_job where tenant_id = $1 and id = $2 and state = 'uploading'
