-- Deletes uploads that were given up, a few at a time. Returns how many.
with gone as (
  delete from ingest_job j where j.tenant_id = $1 and j.id = any(array(
    select u.id from ingest_job u
    where u.tenant_id = $1 and u.state = 'uploading' and u.updated_at < holdfast.now() - $2::interval limit $3))
  returning j.id
)
select count(*)::int from gone
