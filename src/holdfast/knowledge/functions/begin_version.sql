-- Begins to replace a document by the staged version of a job: deletes the former chunks. Returns the document and the number of staged chunks; no row
-- if this epoch does not hold the job any more.
create or replace function holdfast.begin_version(tenant uuid, job uuid, of_epoch int) returns table (document_id uuid, chunks int) language plpgsql
set enable_seqscan = off as $$
#variable_conflict use_column
begin
  document_id := holdfast.hold_ingest_job(tenant, job, of_epoch);
  if document_id is null then
    return;
  end if;
  select j.chunks into chunks from public.ingest_job j where j.tenant_id = tenant and j.id = job;
  perform holdfast.delete_chunks(tenant, document_id);
  return next;
end $$;
revoke execute on function holdfast.begin_version from public;
grant execute on function holdfast.begin_version to holdfast_app;
