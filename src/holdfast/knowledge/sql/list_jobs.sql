-- Returns jobs, newest first: of all documents or of one, of all owners or of some, in all states or in one, all or those of some ids.
select j.*, d.name, d.collection
from ingest_job j join document d on d.tenant_id = $1 and d.id = j.document_id
where j.tenant_id = $1 and ($2::uuid is null or j.document_id = $2) and j.state <> 'uploading'
  and ($3::text[] is null or (d.scope, d.owner) in (select o.scope, o.owner from unnest($3, $4::uuid[]) as o (scope, owner)))
  and ($5::text is null or j.state = $5) and j.id < $6 and ($8::uuid[] is null or j.id = any($8)) and ($9::text[] is null or d.collection = any($9))
order by j.id desc limit $7
