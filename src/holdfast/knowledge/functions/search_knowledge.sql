-- Returns the chunks of documents that match a query best, with their scores and the parts of the scores.
--
-- 1. Which documents are allowed, and how many chunks they have. Without any, this is one index lookup.
-- 2. Candidates: the chunks with the nearest passages, the best by words, and those of documents whose titles the query names.
-- 3. The candidates are scored (score_chunks), and titles added.
-- 4. One hop: what the ten best point to by an entity that the query does not name (hop_of_chunks).
--
-- Vectors: the index finds the nearest if it is there and if that is faster than to compare all vectors of the allowed documents. If a filter
-- leaves too few of what the index found, all are compared after all. So a filter never empties the result.
--
-- Titles: a title stands for few chunks, or it says little: a title of `n` chunks adds a part of the weight, and one of more than
-- `longest_titled` chunks adds nothing. A title inside of a longer one that the query names is not named.
--
-- The settings and `offset 0` fix the plan, because a fresh table has no statistics: nested loops with index lookups only. `weights` has the
-- order of `weights()` in knowledge/search.py, and `parts` is vector, words, title and hop. `nearness` is the cosine of each passage.
create or replace function holdfast.search_knowledge(
  tenant uuid, scopes text[], owners uuid[], collections text[], documents uuid[], containing jsonb, since timestamptz, until timestamptz,
  models text[], vectors halfvec[], unrelated float8[], asked_terms bigint[], asked_keys text[], weights float8[], wanted int
) returns table (
  id uuid, document_id uuid, chunk_index int, content text, char_start bigint, char_end bigint, first_page int, last_page int, section text[],
  passages int[], nearness float8[], embedded text, scope text, owner uuid, agent_id uuid, collection text, name text, title text,
  source text, metadata jsonb, created_at timestamptz, parts float8[], score float8
) language plpgsql stable
set enable_nestloop = on set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
  w_english constant float8 := weights[1];
  w_chinese constant float8 := weights[2];
  english_length constant float8 := weights[3];
  chinese_length constant float8 := weights[4];
  w_title constant float8 := weights[5];
  w_hop constant float8 := weights[6];
  w_mention constant float8 := weights[7];
  hop_margin constant float8 := weights[8];
  rare constant int := weights[9];
  longest_titled constant int := weights[10];
  exact_to constant int := weights[11];
  pool_size constant int := weights[12];
  frequent constant int := weights[13];
  best_count constant int := 10;
  is_filtered constant boolean := documents is not null or containing is not null or since is not null or until is not null;
  spaces constant text[] := array(select o.scope || ':' || o.owner::text from unnest(scopes, owners) as o (scope, owner));
  document_count bigint := 0; -- of the allowed documents
  chunk_count bigint := 0;
  indexed bigint; -- vectors in the index
  allowed uuid[]; -- null if they are too many: then each candidate's document is looked up
  known_terms bigint[];
  worths float8[];
  titled uuid[];
  titled_chunks int[];
  title_worths float8[];
  found record;
  candidates uuid[] := '{}'; -- their documents and, with the same subscripts, their places in them
  candidates_at int[] := '{}';
  scored_documents uuid[];
  scored_at int[];
  scored_vector float8[];
  scored_words float8[];
  scored_title float8[];
  hop_documents uuid[];
  hop_at int[];
  hops float8[];
begin
  -- 1. The allowed documents. Without a filter, an index-only scan is enough.
  if documents is not null then
    allowed := holdfast.allowed_documents(tenant, scopes, owners, spaces, collections, documents, containing, since, until);
    select count(*), sum((select d.chunks from public.document d where d.tenant_id = tenant and d.id = a.id))
    into document_count, chunk_count from unnest(allowed) as a (id);
  else
    for place in 1 .. cardinality(scopes) loop
      if is_filtered then
        select document_count + count(*), chunk_count + coalesce(sum(d.chunks), 0) into document_count, chunk_count
        from public.document d
        where d.tenant_id = tenant and d.scope = scopes[place] and d.owner = owners[place] and d.chunks > 0 and holdfast.is_searched(
          d.scope, d.owner, d.collection, d.id, d.metadata, d.created_at, spaces, collections, null, containing, since, until);
      else
        select document_count + count(*), chunk_count + coalesce(sum(d.chunks), 0) into document_count, chunk_count
        from public.document d
        where d.tenant_id = tenant and d.scope = scopes[place] and d.owner = owners[place] and d.chunks > 0
          and (collections is null or d.collection = any(collections));
      end if;
    end loop;
  end if;
  if chunk_count is null or chunk_count = 0 or wanted <= 0 then
    return;
  end if;
  -- The index visits a few vectors for each that passes the filter, each much slower than to compare it with all others. The weight of that is 12.
  select min(coalesce((
    select i.vectors from public.memory_index i where i.tenant_id = tenant and i.indexed = 'chunk' and i.model = m.model), 0))
  into indexed from unnest(models) as m (model);
  if chunk_count > exact_to and coalesce(indexed, 1) > 0 and chunk_count * chunk_count > 12 * pool_size * coalesce(indexed, 1) then
    allowed := null;
  elsif allowed is null then
    allowed := holdfast.allowed_documents(tenant, scopes, owners, spaces, collections, documents, containing, since, until);
  end if;

  -- 2. Candidates by vector: two passages for each chunk.
  for n in 1 .. cardinality(models) loop
    if allowed is null then
      select array_agg(p.document_id) as documents, array_agg(p.chunk_index) as at into found
      from holdfast.nearest_passages(
        tenant, models[n], vectors[n], spaces, collections, documents, containing, since, until,
        least(20000, 3 * pool_size * greatest(1, indexed / chunk_count))::int, 2 * pool_size) p;
      if coalesce(cardinality(found.at), 0) < 2 * pool_size then
        allowed := holdfast.allowed_documents(tenant, scopes, owners, spaces, collections, documents, containing, since, until);
      end if;
    end if;
    if allowed is not null then
      select array_agg(v.document_id) as documents, array_agg(v.chunk_index) as at into found
      from (
        select v.document_id, v.chunk_index from public.chunk_vector v
        where v.tenant_id = tenant and v.document_id = any(allowed) and v.model = models[n] and v.dimensions = vector_dims(vectors[n])
        order by (v.embedding <#> vectors[n]) + 0 limit 2 * pool_size
      ) v;
    end if;
    candidates := candidates || coalesce(found.documents, '{}');
    candidates_at := candidates_at || coalesce(found.at, '{}');
  end loop;

  -- Candidates by words, and what each term is worth.
  select w.found_documents as documents, w.found_at as at, w.terms, w.worths into found
  from holdfast.chunks_with_words(
    tenant, scopes, owners, spaces, collections, documents, containing, since, until, allowed, chunk_count, document_count, asked_terms,
    pool_size, frequent) w;
  candidates := candidates || found.documents;
  candidates_at := candidates_at || found.at;
  known_terms := found.terms;
  worths := found.worths;

  -- Candidates by title: all chunks of the documents, which are few.
  select array_agg(n.document_id), array_agg(n.worth), array_agg(n.chunks) into titled, title_worths, titled_chunks
  from holdfast.named_documents(
    tenant, scopes, owners, spaces, collections, documents, containing, since, until, asked_keys, w_title, longest_titled) n;
  if titled is not null then
    select candidates || array_agg(t.id), candidates_at || array_agg(i.at) into candidates, candidates_at
    from unnest(titled, titled_chunks) as t (id, chunks) cross join lateral generate_series(0, t.chunks - 1) as i (at);
  end if;

  -- 3. Their scores.
  select array_agg(s.document_id), array_agg(s.chunk_index), array_agg(s.vector), array_agg(s.words),
    array_agg(coalesce(title_worths[array_position(titled, s.document_id)], 0))
  into scored_documents, scored_at, scored_vector, scored_words, scored_title
  from holdfast.score_chunks(
    tenant, candidates, candidates_at, models, vectors, unrelated, known_terms, worths, w_english, w_chinese, english_length, chinese_length) s;
  if scored_at is null then
    return;
  end if;

  -- 4. The hop. What it leads to is a candidate, too, and scored like the others.
  if w_hop > 0 then
    select array_agg(b.document_id) as documents, array_agg(b.at) as at, array_agg(w_hop * (b.s - b.least + hop_margin)) as gives into found
    from (
      select b.*, min(b.s) over () as least
      from (
        select s.document_id, s.at, s.vector + s.words + s.title as s
        from unnest(scored_documents, scored_at, scored_vector, scored_words, scored_title) as s (document_id, at, vector, words, title)
        order by s desc, s.document_id, s.at limit best_count
      ) b
    ) b;
    select array_agg(h.document_id), array_agg(h.chunk_index), array_agg(h.hop) into hop_documents, hop_at, hops
    from holdfast.hop_of_chunks(
      tenant, scopes, owners, spaces, collections, documents, containing, since, until, found.documents, found.at, found.gives, asked_keys,
      w_mention, rare, longest_titled) h;
    select array_agg(h.document_id) as documents, array_agg(h.at) as at into found
    from unnest(hop_documents, hop_at) as h (document_id, at)
    where (h.document_id, h.at) not in (select s.document_id, s.at from unnest(scored_documents, scored_at) as s (document_id, at));
    if found.at is not null then
      select scored_documents || array_agg(s.document_id), scored_at || array_agg(s.chunk_index), scored_vector || array_agg(s.vector),
        scored_words || array_agg(s.words), scored_title || array_fill(0::float8, array[count(*)::int])
      into scored_documents, scored_at, scored_vector, scored_words, scored_title
      from holdfast.score_chunks(
        tenant, found.documents, found.at, models, vectors, unrelated, known_terms, worths, w_english, w_chinese, english_length,
        chinese_length) s;
    end if;
  end if;

  -- 5. The best of them, with their documents.
  return query
  select c.id, c.document_id, c.chunk_index, c.content, c.char_start, c.char_end, c.first_page, c.last_page, c.section, c.passages,
    array(
      select max(v.nearness) from unnest(models, vectors, unrelated) as q (model, vector, floor)
      cross join lateral (
        select v.passage, -(v.embedding <#> q.vector) - q.floor as nearness from public.chunk_vector v
        where v.tenant_id = tenant and v.document_id = b.document_id and v.chunk_index = b.at and v.model = q.model
          and v.dimensions = vector_dims(q.vector) offset 0) v
      group by v.passage order by v.passage),
    c.embedded, d.scope, d.owner, d.agent_id, d.collection, d.name, d.title, d.source, d.metadata, d.created_at,
    array[b.vector, b.words, b.title, b.hop], b.total
  from (
    select s.*, s.vector + s.words + s.title + s.hop as total
    from (
      select s.document_id, s.at, sum(s.vector) as vector, sum(s.words) as words, sum(s.title) as title, sum(s.hop) as hop
      from (
        select s.*, 0::float8 as hop
        from unnest(scored_documents, scored_at, scored_vector, scored_words, scored_title) as s (document_id, at, vector, words, title)
        union all
        select h.document_id, h.at, 0, 0, 0, h.hop from unnest(hop_documents, hop_at, hops) as h (document_id, at, hop)
      ) s
      group by s.document_id, s.at
    ) s
    order by total desc, s.document_id, s.at limit wanted
  ) b
  cross join lateral (
    select c.* from public.chunk c where c.tenant_id = tenant and c.document_id = b.document_id and c.chunk_index = b.at offset 0) c
  cross join lateral (select d.* from public.document d where d.tenant_id = tenant and d.id = b.document_id offset 0) d
  order by b.total desc, b.document_id, b.at;
end $$;
revoke execute on function holdfast.search_knowledge from public;
grant execute on function holdfast.search_knowledge to holdfast_app;
