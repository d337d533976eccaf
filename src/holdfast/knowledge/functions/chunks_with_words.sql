-- Returns the chunks that words find, best first, and the words of the query that occur in the allowed documents, each with what it is worth: its
-- idf, divided by the root of the sum of all.
--
-- The work is bounded. A term is read whole if it is in at most `frequent` documents of the tenant. Of any other, a sample of the allowed documents
-- tells how many chunks have it; the sample is all of them, if they are few. The rarest terms select the chunks: as many terms as are in MOST
-- chunks together.
--
-- The settings and `offset 0` fix the plan: tables are read by lookups of one term, or of one term and document, and everything else is hashed.
create or replace function holdfast.chunks_with_words(
  tenant uuid, scopes text[], owners uuid[], spaces text[], collections text[], documents uuid[], containing jsonb, since timestamptz,
  until timestamptz, allowed uuid[], chunk_count bigint, document_count bigint, asked_terms bigint[], wanted int, frequent int,
  out found_documents uuid[], out found_at int[], out terms bigint[], out worths float8[]
) language plpgsql stable
set enable_hashjoin = on set enable_nestloop = off set enable_mergejoin = off set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
  most constant int := 5000;
  sample_size constant int := least(1000, greatest(200, 10 * document_count / frequent)); -- ten of them have a term that is barely frequent
  rare_terms bigint[];
  frequent_terms bigint[];
  sample uuid[] := '{}';
  sample_chunks float8;
begin
  select coalesce(array_agg(n.term) filter (where n.documents <= frequent), '{}'),
    coalesce(array_agg(n.term) filter (where n.documents > frequent), '{}')
  into rare_terms, frequent_terms
  from (
    select q.term, (
      select count(*) from (select from public.chunk_term t where t.tenant_id = tenant and t.term = q.term limit frequent + 1) t) as documents
    from unnest(asked_terms) as q (term)
  ) n;
  if frequent_terms <> '{}' and allowed is not null then
    sample := array(
      select allowed[i] from generate_series(1, cardinality(allowed), greatest(1, cardinality(allowed) / sample_size)) as i);
  elsif frequent_terms <> '{}' then
    sample := array(
      select d.id from public.document d
      where d.tenant_id = tenant and d.scope = any(scopes) and d.owner = any(owners) and d.chunks > 0
        and abs(uuid_hash(d.id)::bigint) % greatest(1, document_count / sample_size) = 0
        and holdfast.is_searched(
          d.scope, d.owner, d.collection, d.id, d.metadata, d.created_at, spaces, collections, documents, containing, since, until));
  end if;
  sample_chunks := (
    select sum((select d.chunks from public.document d where d.tenant_id = tenant and d.id = s.id)) from unnest(sample) as s (id));

  with posted as materialized (
    select q.term, t.document_id, t.chunks, false as is_sample
    from unnest(rare_terms) as q (term)
    cross join lateral (
      select t.document_id, t.chunks from public.chunk_term t where t.tenant_id = tenant and t.term = q.term offset 0) t
    where case when allowed is not null then t.document_id in (select a.id from unnest(allowed) as a (id)) else (
      select holdfast.is_searched(
        d.scope, d.owner, d.collection, d.id, d.metadata, d.created_at, spaces, collections, documents, containing, since, until)
      from public.document d where d.tenant_id = tenant and d.id = t.document_id) end
    union all
    select q.term, s.id, t.chunks, true
    from unnest(frequent_terms) as q (term) cross join unnest(sample) as s (id)
    cross join lateral (
      select t.chunks from public.chunk_term t where t.tenant_id = tenant and t.term = q.term and t.document_id = s.id offset 0) t
  ), counted as (
    select p.term, p.is_sample,
      sum(cardinality(p.chunks)) * case when p.is_sample then chunk_count / greatest(sample_chunks, 1) else 1 end as chunks
    from posted p group by p.term, p.is_sample
    union all -- a frequent term that the sample misses is in less than one of its chunks
    select q.term, true, 0.5 * chunk_count / greatest(sample_chunks, 1)
    from unnest(frequent_terms) as q (term)
    where cardinality(sample) between 1 and document_count - 1 and q.term not in (select p.term from posted p where p.is_sample)
  ), weighted as materialized (
    select c.term, ln(1 + greatest(0, chunk_count - c.chunks + 0.5::float8) / (c.chunks + 0.5::float8)) as idf,
      sum(c.chunks) over rarest <= greatest(most, first_value(c.chunks) over rarest) as selects
    from counted c window rarest as (order by c.is_sample, c.chunks, c.term)
  ), ranked as materialized (
    select p.document_id, c.chunk_index, sum(w.idf) as worth
    from posted p join weighted w on w.term = p.term cross join lateral unnest(p.chunks) as c (chunk_index)
    where w.selects
    group by p.document_id, c.chunk_index order by worth desc, p.document_id, c.chunk_index limit wanted
  )
  select array(select r.document_id from ranked r), array(select r.chunk_index from ranked r),
    coalesce(array_agg(w.term), '{}'), coalesce(array_agg(w.idf / sqrt(greatest((select sum(x.idf) from weighted x), 1e-6))), '{}')
  into found_documents, found_at, terms, worths
  from weighted w;
end $$;
revoke execute on function holdfast.chunks_with_words from public;
grant execute on function holdfast.chunks_with_words to holdfast_app;
