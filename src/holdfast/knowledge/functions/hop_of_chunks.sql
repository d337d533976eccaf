-- Returns the chunks to which some chunks point by an entity, and how much that adds to their scores: the most of all ways, not the sum.
--
-- The `parents` give what `gives` says. An entity that a parent mentions and the query does not name leads to the documents of that title, and to
-- the other chunks that mention it, if they are few: at most `rare`. It leads to less the more there are. Entities are compared by their
-- canonical keys in the spaces of all owners that are searched.
--
-- The work is bounded: MOST_ENTITIES of each parent, MOST_CHUNKS in all. The settings and `offset 0` fix the plan: tables are read by index
-- lookups, and everything else is hashed.
create or replace function holdfast.hop_of_chunks(
  tenant uuid, scopes text[], owners uuid[], spaces text[], collections text[], documents uuid[], containing jsonb, since timestamptz,
  until timestamptz, parents uuid[], parents_at int[], gives float8[], asked_keys text[], w_mention float8, rare int, longest_titled int
) returns table (document_id uuid, chunk_index int, hop float8) language plpgsql stable
set enable_hashjoin = on set enable_nestloop = off set enable_mergejoin = off set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
  most_entities constant int := 64;
  most_chunks constant int := 256;
begin
  return query
  with mentioned as materialized (
    select p.document_id, p.chunk_index, p.give, e.key, e.canonical
    from unnest(parents, parents_at, gives) as p (document_id, chunk_index, give)
    cross join lateral (
      select c.id from public.chunk c
      where c.tenant_id = tenant and c.document_id = p.document_id and c.chunk_index = p.chunk_index offset 0) c
    cross join lateral (
      select l.entity_id from public.memory_entities l where l.tenant_id = tenant and l.memory_id = c.id
      order by l.entity_id limit most_entities) l
    cross join lateral (
      select e.key, e.canonical from public.entities e where e.tenant_id = tenant and e.id = l.entity_id offset 0) e
    where e.key not in (select k.key from unnest(asked_keys) as k (key))
      and e.canonical not in (select k.key from unnest(asked_keys) as k (key))
  ), canonicals as materialized (
    select distinct m.canonical from mentioned m
  ), titled as (
    select k.canonical, d.id, d.chunks, sum(d.chunks) over (partition by k.canonical) as n
    from (select m.canonical, m.key from mentioned m union select m.canonical, m.canonical from mentioned m) k
    cross join lateral (
      select d.id, d.chunks from public.document d
      where d.tenant_id = tenant and d.title_key = k.key and d.chunks > 0 and holdfast.is_searched(
        d.scope, d.owner, d.collection, d.id, d.metadata, d.created_at, spaces, collections, documents, containing, since, until)
      limit longest_titled + 1) d
  ), linked as (
    select l.*, count(*) over (partition by l.canonical) as n
    from (
    select distinct k.canonical, l.memory_id, l.document_id
    from canonicals k cross join unnest(scopes, owners) as o (scope, owner)
    cross join lateral (
      select e.id from public.entities e
      where e.tenant_id = tenant and e.scope = o.scope and e.owner = o.owner and e.canonical = k.canonical limit rare + 1) e
    cross join lateral (
      select l.memory_id, l.document_id from public.memory_entities l
      where l.tenant_id = tenant and l.entity_id = e.id and l.document_id is not null limit rare + 1) l
    ) l
  ), targets as materialized (
    select t.canonical, t.id as document_id, at.chunk_index, 1 / log(2::numeric, 1 + t.n)::float8 as share
    from titled t cross join generate_series(0, t.chunks - 1) as at (chunk_index)
    where t.n <= longest_titled
    union all
    select l.canonical, l.document_id, c.chunk_index, w_mention / log(2::numeric, 1 + l.n)::float8
    from linked l
    cross join lateral (select c.chunk_index from public.chunk c where c.tenant_id = tenant and c.id = l.memory_id offset 0) c
    cross join lateral (
      select from public.document d
      where d.tenant_id = tenant and d.id = l.document_id and holdfast.is_searched(
        d.scope, d.owner, d.collection, d.id, d.metadata, d.created_at, spaces, collections, documents, containing, since, until) offset 0) d
    where l.n between 2 and rare
  )
  select t.document_id, t.chunk_index, max(m.give * t.share) as hop
  from mentioned m join targets t on t.canonical = m.canonical
  where t.document_id <> m.document_id or t.chunk_index <> m.chunk_index
  group by t.document_id, t.chunk_index order by hop desc, t.document_id, t.chunk_index limit most_chunks;
end $$;
revoke execute on function holdfast.hop_of_chunks from public;
grant execute on function holdfast.hop_of_chunks to holdfast_app;
