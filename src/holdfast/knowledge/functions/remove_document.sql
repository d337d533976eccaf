-- Removes a document with its chunks, vectors, words, jobs and uploads. Returns how many chunks it had; null if there is no such document.
create or replace function holdfast.remove_document(tenant uuid, document uuid) returns int language plpgsql
set enable_seqscan = off as $$
declare
  removed int;
begin
  -- A commit of a new version waits for this lock, and then finds no job.
  perform from public.document d where d.tenant_id = tenant and d.id = document for update;
  if not found then
    return null;
  end if;
  removed := holdfast.delete_chunks(tenant, document);
  delete from public.ingest_job j where j.tenant_id = tenant and j.document_id = document;
  delete from public.document d where d.tenant_id = tenant and d.id = document;
  perform pg_notify('holdfast_ingested', '');
  return removed;
end $$;
revoke execute on function holdfast.remove_document from public;
grant execute on function holdfast.remove_document to holdfast_app;
