-- Returns a job with the name and the collection of its document.
select j.*, d.name, d.collection
from ingest_job j join document d on d.tenant_id = $1 and d.id = j.document_id
where j.tenant_id = $1 and j.id = $2 and j.state <> 'uploading'
