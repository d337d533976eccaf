-- Returns the nearest of a tenant's organizational memories by the tenant's vector index (memory/indexes.py). The settings leave the planner no
-- other plan. The index is partial, so the statement contains its conditions as literals. The iterative scan skips memories that are no longer
-- live or below the importance. If it ends with too few, all vectors are compared.
create or replace function holdfast.nearest_indexed(
  tenant uuid, of_model text, near_to halfvec, moment timestamptz, min_importance float8, wanted_count int
) returns uuid[] language plpgsql stable
set enable_sort = off set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  nearest uuid[];
begin
  perform set_config('hnsw.ef_search', greatest(200, least(1000, 4 * wanted_count))::text, true);
  perform set_config('hnsw.iterative_scan', 'strict_order', true);
  execute format(
    'select array(select v.memory_id from public.memory_vector v
       where v.tenant_id = %1$L and v.scope = ''organization'' and v.owner = %1$L and v.model = %2$L and v.dimensions = %3$s
         and v.live_until > $2 and v.importance >= $3::float4
       order by v.embedding::halfvec(%3$s) <#> $1 limit $4)',
    tenant, of_model, vector_dims(near_to))
  using near_to, moment, min_importance, wanted_count into nearest;
  if cardinality(nearest) < wanted_count then
    nearest := array(
      select v.memory_id from public.memory_vector v
      where v.tenant_id = tenant and v.scope = 'organization' and v.owner = tenant and v.model = of_model
        and v.dimensions = vector_dims(near_to) and v.live_until > moment and v.importance >= min_importance::float4
      order by (v.embedding <#> near_to) + 0 limit wanted_count);
  end if;
  return nearest;
end $$;
revoke execute on function holdfast.nearest_indexed from public;
grant execute on function holdfast.nearest_indexed to holdfast_app;
