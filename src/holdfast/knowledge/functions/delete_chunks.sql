-- Deletes the chunks of a document with their vectors, words and entities. Returns how many there were. The chunks go first: who is adding vectors to one holds it,
-- and its vectors are there when it is gone.
create or replace function holdfast.delete_chunks(tenant uuid, document uuid) returns int language plpgsql
set enable_seqscan = off as $$
declare
  removed int;
begin
  perform holdfast.unlink_entities(tenant, null, document);
  delete from public.chunk c where c.tenant_id = tenant and c.document_id = document;
  get diagnostics removed = row_count;
  delete from public.chunk_vector v where v.tenant_id = tenant and v.document_id = document;
  delete from public.chunk_term t where t.tenant_id = tenant and t.document_id = document;
  return removed;
end $$;
revoke execute on function holdfast.delete_chunks from public;
grant execute on function holdfast.delete_chunks to holdfast_app;
