-- Returns the chunks with the nearest passages by the tenant's vector index (memory/indexes.py), of those that a search covers; a chunk several
-- times, if several of its passages are near. It asks the index for `visited` vectors and filters these, so that it visits a bounded number
-- and in the true order. If fewer than `wanted` pass, the caller compares all vectors of the allowed documents.
--
-- The settings leave the planner no other plan. The index is partial, so the statement contains its conditions as literals.
create or replace function holdfast.nearest_passages(
  tenant uuid, of_model text, near_to halfvec, spaces text[], collections text[], documents uuid[], containing jsonb, since timestamptz,
  until timestamptz, visited int, wanted int
) returns table (document_id uuid, chunk_index int) language plpgsql stable
set enable_sort = off set enable_seqscan = off set enable_bitmapscan = off set enable_nestloop = on
set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
begin
  perform set_config('hnsw.ef_search', least(1000, greatest(400, visited))::text, true);
  perform set_config('hnsw.iterative_scan', 'strict_order', true);
  return query execute format(
    'select v.document_id, v.chunk_index
     from (
       select v.document_id, v.chunk_index from public.chunk_vector v
       where v.tenant_id = %1$L and v.model = %2$L and v.dimensions = %3$s
       order by v.embedding::halfvec(%3$s) <#> $1 limit $8
     ) v cross join lateral (
       select from public.document d
       where d.tenant_id = %1$L and d.id = v.document_id
         and holdfast.is_searched(d.scope, d.owner, d.collection, d.id, d.metadata, d.created_at, $2, $3, $4, $5, $6, $7) offset 0
     ) d limit $9',
    tenant, of_model, vector_dims(near_to))
  using near_to, spaces, collections, documents, containing, since, until, visited, wanted;
end $$;
revoke execute on function holdfast.nearest_passages from public;
grant execute on function holdfast.nearest_passages to holdfast_app;
