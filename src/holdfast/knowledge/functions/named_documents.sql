-- Returns the documents whose titles the query names, and what that is worth: `w_title` for a title that stands for one chunk, less for one that
-- stands for several, in one long document or in many. A title of more than `longest` chunks says too little. A title inside of a longer one that the
-- query names is not named. A title is also named by an alias, such as itself without a remark in brackets.
create or replace function holdfast.named_documents(
  tenant uuid, scopes text[], owners uuid[], spaces text[], collections text[], documents uuid[], containing jsonb, since timestamptz,
  until timestamptz, asked_keys text[], w_title float8, longest int
) returns table (document_id uuid, chunks int, worth float8) language plpgsql stable
set enable_nestloop = on set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
begin
  return query
  with titles as (
    select distinct k.key, k.key as title from unnest(asked_keys) as k (key)
    union
    select k.key, e.canonical from unnest(asked_keys) as k (key) cross join unnest(scopes, owners) as o (scope, owner)
    cross join lateral (
      select e.canonical from public.entities e
      where e.tenant_id = tenant and e.scope = o.scope and e.owner = o.owner and e.key = k.key and e.canonical <> k.key offset 0) e
  ), named as materialized (
    select t.key, d.id, d.chunks, sum(d.chunks) over (partition by t.key) as n
    from titles t
    cross join lateral (
      select d.id, d.chunks from public.document d
      where d.tenant_id = tenant and d.title_key = t.title and d.chunks > 0 and holdfast.is_searched(
        d.scope, d.owner, d.collection, d.id, d.metadata, d.created_at, spaces, collections, documents, containing, since, until)
      limit longest + 1) d
  )
  select n.id, n.chunks, max(w_title / log(2::numeric, 1 + n.n))::float8
  from named n
  where n.n <= longest and not exists (select from named o where o.key <> n.key and strpos(o.key, n.key) > 0)
  group by n.id, n.chunks;
end $$;
revoke execute on function holdfast.named_documents from public;
grant execute on function holdfast.named_documents to holdfast_app;
