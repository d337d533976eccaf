-- Replaces a document by the staged version of a job, in one step. Returns the document's collection; null if this epoch does not hold the job any more.
create or replace function holdfast.commit_version(tenant uuid, job uuid, of_epoch int, own_key text) returns text language plpgsql
set enable_seqscan = off as $$
declare
  begun record;
begin
  select * into begun from holdfast.begin_version(tenant, job, of_epoch);
  if not found then
    return null;
  end if;
  perform holdfast.insert_chunks(tenant, job, begun.document_id, 0, begun.chunks);
  perform holdfast.insert_chunk_terms(tenant, job, begun.document_id, 0, 1);
  return holdfast.end_version(tenant, job, begun.document_id, own_key);
end $$;
revoke execute on function holdfast.commit_version from public;
grant execute on function holdfast.commit_version to holdfast_app;
