-- Ends the replacement of a document: says what it is now, ends the job, and deletes the file and the staged chunks. `own_key` is the title of the file
-- itself as searches compare it; a title that a caller gave stays. Returns the document's collection.
create or replace function holdfast.end_version(tenant uuid, job uuid, document uuid, own_key text) returns text language plpgsql
set enable_seqscan = off as $$
declare
  done public.ingest_job;
  found_collection text;
begin
  update public.ingest_job j set state = 'done', holder = null, position = null, error = null, updated_at = holdfast.now()
  where j.tenant_id = tenant and j.id = job
  returning j.* into done;
  update public.document d set
    version = d.version + 1, hash = done.hash, splitting = done.splitting, media_type = done.found_type, size = done.size, status = 'ready',
    error = null, pages = done.pages, chunks = done.chunks, characters = done.characters, updated_at = holdfast.now(),
    title = case when d.title_given then d.title else done.title end,
    title_key = case when d.title_given then d.title_key when done.title is not null then own_key end
  where d.tenant_id = tenant and d.id = document
  returning d.collection into found_collection;
  perform holdfast.clear_jobs(tenant, array[job]);
  perform pg_notify('holdfast_ingested', '');
  return found_collection;
end $$;
revoke execute on function holdfast.end_version from public;
grant execute on function holdfast.end_version to holdfast_app;
