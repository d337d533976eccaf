-- Returns the statement that creates the vector index of a tenant's organizational memories of one model. The index is partial: only writes of
-- this tenant maintain it, and its results need no filter by tenant.
select format(
  'create index concurrently if not exists %I on public.%I using hnsw ((embedding::halfvec(%s)) halfvec_ip_ops)
   where tenant_id = %L and scope = ''organization'' and model = %L',
  $1::text, case when $4::int in (384, 512) then 'memory_vector_' || $4::int else 'memory_vector_other' end, $4::int, $2::uuid, $3::text)
