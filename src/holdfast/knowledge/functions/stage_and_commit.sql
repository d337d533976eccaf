-- Stores the last chunks of a job and replaces its document, in one step: a short document needs no other. Returns the document's collection; null, and
-- stores nothing, if this epoch does not hold the job any more. The document is locked first, as everywhere.
create or replace function holdfast.stage_and_commit(
  tenant uuid, job uuid, of_epoch int, items json, contents text[], all_terms bigint[], all_vectors halfvec[],
  new_position bytea, new_units int, new_total int, new_characters bigint, new_pages int, new_title text, new_type text, own_key text
) returns text language plpgsql
set enable_seqscan = off as $$
begin
  if holdfast.hold_ingest_job(tenant, job, of_epoch) is null then
    return null;
  end if;
  perform holdfast.stage_chunks(tenant, job, of_epoch, items, contents, all_terms, all_vectors, new_position, new_units, new_total, new_characters,
    new_pages, new_title, new_type);
  return holdfast.commit_version(tenant, job, of_epoch, own_key);
end $$;
revoke execute on function holdfast.stage_and_commit from public;
grant execute on function holdfast.stage_and_commit to holdfast_app;
