-- Returns the chunks that match a query as memories, for searches of memories: the columns of search_memories, and those of a chunk. For each owner,
-- at most as many as are `wanted` of it; none for a session. The score has what a memory has for its age, importance and trust, so that
-- both are in one ranking: a chunk is important and trusted, and does not fade.
--
-- `vector_parts`, `term_parts`: only the whole query counts, which is part 0. A chunk has no history: as of a time, what documents said then is
-- unknown, so those that were there are searched as they are.
create or replace function holdfast.search_chunks(
  tenant uuid, scopes text[], owners uuid[], wanted int[], collections text[],
  vector_parts int[], models text[], vectors halfvec[], unrelated float8[], term_parts int[], asked_terms bigint[], asked_keys text[],
  weights float8[], constants float8[], containing jsonb, since timestamptz, until timestamptz, as_of timestamptz
) returns table (
  id uuid, scope text, owner uuid, agent_id uuid, user_id uuid, content text, type text, importance float8, trust text, metadata jsonb,
  source text, key text, conversation text, seq bigint, author text, said_at timestamptz, created_at timestamptz, valid_from timestamptz,
  valid_to timestamptz, expires_at timestamptz, superseded_by uuid, pinned boolean, buried_at timestamptz, embedded text, access_count int,
  last_accessed timestamptz, version int, parts float8[], score float8,
  document_id uuid, name text, first_page int, last_page int, char_start bigint, passages int[], nearness float8[]
) language plpgsql stable as $$
#variable_conflict use_column
declare
  whole_models constant text[] := array(select q.model from unnest(vector_parts, models) as q (part, model) where q.part = 0);
  whole_vectors constant halfvec[] := array(select q.vector from unnest(vector_parts, vectors) as q (part, vector) where q.part = 0);
  whole_floors constant float8[] := array(select q.floor from unnest(vector_parts, unrelated) as q (part, floor) where q.part = 0);
  whole_terms constant bigint[] := array(select q.term from unnest(term_parts, asked_terms) as q (part, term) where q.part = 0);
  constant_sum constant float8 := constants[1] + constants[2] + constants[3];
begin
  for place in 1 .. cardinality(scopes) loop
    continue when not exists (
      select from public.document d where d.tenant_id = tenant and d.scope = scopes[place] and d.owner = owners[place] and d.chunks > 0);
    return query
    select h.id, h.scope, h.owner, null::uuid, null::uuid, h.content, 'knowledge', 1::float8, 'user', h.metadata, coalesce(h.source, h.name),
      null::text, null::text, null::bigint, null::text, null::timestamptz, h.created_at, h.created_at, 'infinity'::timestamptz,
      'infinity'::timestamptz, null::uuid, false, null::timestamptz, h.embedded, 0, h.created_at, 1,
      array[h.parts[1], h.parts[2], 0, 0, 0, 0, constants[1], constants[2], constants[3], h.parts[3] + h.parts[4]], h.score + constant_sum,
      h.document_id, h.name, h.first_page, h.last_page, h.char_start, h.passages, h.nearness
    from holdfast.search_knowledge(
      tenant, scopes[place:place], owners[place:place], collections, null, nullif(containing, '{}'), since,
      least(until, as_of), whole_models, whole_vectors, whole_floors, whole_terms, asked_keys, weights, wanted[place]) h;
  end loop;
end $$;
revoke execute on function holdfast.search_chunks from public;
grant execute on function holdfast.search_chunks to holdfast_app;
