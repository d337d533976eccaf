-- Stores memories, given as JSON with the columns of `memory`; all of them or none. A memory whose key or digest exists already is merged into the
-- existing one (fold_memory): the later expiry and the higher importance win. If a session has more than `session_limit` memories, the least
-- important ones are deleted, of equal importance the oldest first; never pinned ones. `lifetimes` and `vectors` are in the order of the items,
-- with null for none. `graph` is what new memories name (link_graph).
drop function if exists holdfast.remember(uuid, text, uuid, int, json, interval[], halfvec[]);
drop function if exists holdfast.remember(uuid, int, json, interval[], halfvec[]);
create or replace function holdfast.remember(
  tenant uuid, session_limit int, items json, lifetimes interval[], vectors halfvec[], graph json default null
) returns table (is_new boolean, stored public.memory) language plpgsql
set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  one record;
  item public.memory;
  wakes boolean := false; -- whether to notify the Indexer: a turn has no vector
  sessions uuid[];
  of_session uuid;
  excess uuid[];
  added_ids uuid[] := '{}';
begin
  sessions := array(
    select distinct g.owner from json_populate_recordset(null::public.memory, items) g where g.scope = 'session' order by g.owner);
  if sessions <> '{}' then
    -- A concurrent removal of the session waits for this lock and then deletes these memories, too; or it came first, and the session is gone.
    perform from public.conversation c where c.tenant_id = tenant and c.id = any(sessions) order by c.id for key share;
    if (select count(*) from public.conversation c where c.tenant_id = tenant and c.id = any(sessions)) < cardinality(sessions) then
      raise no_data_found using message = 'the session was deleted';
    end if;
  end if;
  for one in
    with given as materialized (
      select g.* from json_populate_recordset(null::public.memory, items) with ordinality g
    ), added as (
      insert into public.memory (
        tenant_id, scope, id, owner, agent_id, user_id, version, length, importance, access_count, last_accessed, created_at, valid_from,
        valid_to, expires_at, buried_at, pinned, by_owner, tells_when, seq, said_at, language, embedded, type, trust, conversation, author_terms,
        author, superseded_by, document_id, chunk_index, source, key, digest, metadata, content, terms)
      select tenant, g.scope, g.id, g.owner, g.agent_id, g.user_id, coalesce(g.version, 1), g.length, g.importance,
        coalesce(g.access_count, 0), coalesce(g.last_accessed, holdfast.now()), coalesce(g.created_at, holdfast.now()),
        coalesce(g.valid_from, least(g.said_at, holdfast.now())), coalesce(g.valid_to, 'infinity'),
        coalesce(g.expires_at, holdfast.now() + lifetimes[g.ordinality], 'infinity'), g.buried_at, coalesce(g.pinned, false), g.by_owner,
        coalesce(g.tells_when, false), g.seq, g.said_at, g.language, g.embedded, g.type, g.trust, g.conversation, g.author_terms, g.author,
        g.superseded_by, g.document_id, g.chunk_index, g.source, g.key, g.digest, g.metadata, g.content, g.terms
      from given g
      on conflict do nothing
      returning memory.*
    ), worded as (
      insert into public.memory_term (tenant_id, scope, owner, term, memory_id)
      select tenant, a.scope, a.owner, t.term, a.id from added a, unnest(a.terms) as t (term)
      on conflict do nothing
    ), meant as (
      insert into public.memory_vector (tenant_id, scope, owner, memory_id, dimensions, importance, live_until, model, embedding)
      select tenant, a.scope, a.owner, a.id, vector_dims(vectors[g.ordinality]), a.importance,
        least(a.valid_to, a.expires_at, a.buried_at), a.embedded, vectors[g.ordinality]
      from added a join given g on g.id = a.id where vectors[g.ordinality] is not null
    )
    select g.ordinality::int as place, a as memory, case when a.id is null then row_to_json(g) end as again,
      (a.embedded is null or rtrim(a.embedded) like '%+previous') and exists (
        select from public.memory n
        where n.tenant_id = tenant and n.scope = a.scope and n.owner = a.owner and n.conversation = a.conversation and n.seq > a.seq
      ) as has_next
    from given g left join added a on a.id = g.id order by g.ordinality
  loop
    stored := one.memory;
    is_new := stored.id is not null;
    if not is_new then
      item := json_populate_record(null::public.memory, one.again);
      item.expires_at := coalesce(item.expires_at, holdfast.now() + lifetimes[one.place], 'infinity');
      stored := holdfast.fold_memory(tenant, item.scope, item.owner, item);
      if stored.id is null then -- the existing one had expired and is deleted: store the new one
        select r.is_new, r.stored as memory into one
        from holdfast.remember(
          tenant, session_limit, json_build_array(one.again), lifetimes[one.place:one.place], vectors[one.place:one.place]) r;
        is_new := one.is_new;
        stored := one.memory;
      end if;
    elsif one.has_next then
      perform holdfast.embed_next_anew(stored);
    end if;
    if is_new and graph is not null then
      added_ids := added_ids || stored.id;
    end if;
    wakes := wakes or is_new and stored.embedded is null and stored.conversation is not null and stored.seq is not null;
    return next;
  end loop;
  if added_ids <> '{}' then
    perform holdfast.link_graph(tenant, added_ids, graph);
  end if;
  if wakes then
    perform pg_notify('holdfast_memory', '');
  end if;
  foreach of_session in array sessions loop
    if session_limit is not null and exists (
      select from public.memory m where m.tenant_id = tenant and m.scope = 'session' and m.owner = of_session offset session_limit
    ) then
      excess := array(
        select m.id from public.memory m
        where m.tenant_id = tenant and m.scope = 'session' and m.owner = of_session and m.expires_at > holdfast.now() and not m.pinned
          and m.valid_to > holdfast.now() and m.buried_at is null
        order by m.importance desc, m.created_at desc, m.id desc offset session_limit);
      perform holdfast.delete_memories(tenant, 'session', of_session, excess, 'limit');
    end if;
  end loop;
end $$;
revoke execute on function holdfast.remember from public;
grant execute on function holdfast.remember to holdfast_app;
