-- Returns the statement that creates the vector index of a tenant's organizational memories, or of its chunks, of one model. The index is partial:
-- only writes of this tenant maintain it, and its results need no filter by tenant.
select format(
  'create index concurrently if not exists %I on public.%I using hnsw ((embedding::halfvec(%s)) halfvec_ip_ops)
   with (m = 16, ef_construction = 64) where tenant_id = %L and model = %L %s',
  $1::text, $2::text || '_vector_' || case when $5::int in (384, 512) then $5::text else 'other' end, $5::int, $3::uuid, $4::text,
  case when $2::text = 'memory' then 'and scope = ''organization''' end)
