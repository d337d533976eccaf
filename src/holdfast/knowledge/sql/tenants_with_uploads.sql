-- Returns the tenants that have uploads that were given up.
select t.id from tenant t where exists (
  select from ingest_job j where j.tenant_id = t.id and j.state = 'uploading' and j.updated_at < holdfast.now() - $1::interval)
