-- Returns what vector and words give to these chunks. A chunk has the cosine of its best passage. `worths` are what
-- each of `asked_terms` is worth. A chunk that is gone is left out.
--
-- The settings and `offset 0` fix the plan: each chunk takes a few index lookups.
create or replace function holdfast.score_chunks(
  tenant uuid, documents uuid[], indexes int[], models text[], vectors halfvec[], unrelated float8[], asked_terms bigint[], worths float8[],
  w_english float8, w_chinese float8, english_length float8, chinese_length float8
) returns table (document_id uuid, chunk_index int, vector float8, words float8) language plpgsql stable
set enable_nestloop = on set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
begin
  return query
  with given as materialized (
    select distinct g.document_id, g.chunk_index from unnest(documents, indexes) as g (document_id, chunk_index)
  ), found as (
    select g.document_id, g.chunk_index, v.cosine, null::float8 as worth, true as wanted
    from given g cross join unnest(models, vectors, unrelated) as q (model, vector, floor)
    cross join lateral (
      select -(v.embedding <#> q.vector) - q.floor as cosine from public.chunk_vector v
      where v.tenant_id = tenant and v.document_id = g.document_id and v.chunk_index = g.chunk_index and v.model = q.model
        and v.dimensions = vector_dims(q.vector) offset 0) v
    union all
    select d.document_id, c.chunk_index, null, q.worth, false
    from (select distinct g.document_id from given g) d cross join unnest(asked_terms, worths) as q (term, worth)
    cross join lateral (
      select t.chunks from public.chunk_term t where t.tenant_id = tenant and t.term = q.term and t.document_id = d.document_id offset 0) t
    cross join lateral unnest(t.chunks) as c (chunk_index)
    union all
    select g.document_id, g.chunk_index, null, null, true from given g
  ), summed as materialized (
    select f.document_id, f.chunk_index, max(f.cosine) as cosine, sum(f.worth) as matched
    from found f group by f.document_id, f.chunk_index having bool_or(f.wanted)
  )
  select s.document_id, s.chunk_index, coalesce(s.cosine, 0),
    case c.language
      when 'en' then w_english * 2.2 / (1 + 1.2 * sqrt(greatest(1, c.length / english_length)))
      else w_chinese * 2.2 / (1 + 1.2 * sqrt(greatest(1, c.length / chinese_length))) end * coalesce(s.matched, 0)
  from summed s cross join lateral (
    select c.length, c.language from public.chunk c
    where c.tenant_id = tenant and c.document_id = s.document_id and c.chunk_index = s.chunk_index offset 0) c;
end $$;
revoke execute on function holdfast.score_chunks from public;
grant execute on function holdfast.score_chunks to holdfast_app;
