-- Stores the vectors of chunks, and deletes those of their former model. A chunk that was replaced meanwhile is left out. `all_vectors` are those of all
-- chunks, one after the other: `counts` says how many each chunk has. Returns how many chunks got theirs.
create or replace function holdfast.embed_chunks(
  tenant uuid, documents uuid[], indexes int[], digests uuid[], models text[], counts int[], all_vectors halfvec[]
) returns int language plpgsql
set enable_seqscan = off as $$
declare
  written int := 0;
  used int := 0;
begin
  for place in 1 .. cardinality(documents) loop
    update public.chunk c set embedded = models[place]
    where c.tenant_id = tenant and c.document_id = documents[place] and c.chunk_index = indexes[place] and c.digest = digests[place];
    if found then
      delete from public.chunk_vector v
      where v.tenant_id = tenant and v.document_id = documents[place] and v.chunk_index = indexes[place];
      insert into public.chunk_vector (tenant_id, document_id, chunk_index, passage, dimensions, model, embedding)
      select tenant, documents[place], indexes[place], n - 1, vector_dims(all_vectors[used + n]), models[place], all_vectors[used + n]
      from generate_series(1, counts[place]) as n
      on conflict do nothing;
      written := written + 1;
    end if;
    used := used + counts[place];
  end loop;
  return written;
end $$;
revoke execute on function holdfast.embed_chunks from public;
grant execute on function holdfast.embed_chunks to holdfast_app;
