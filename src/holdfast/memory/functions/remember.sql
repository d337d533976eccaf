-- Stores memories of one owner, given as JSON with the columns of `memory`; all of them or none. One whose key or whose very words are
-- there already is folded into what is there: it lasts as long as either would, and matters as much as either does. Past `max_count` the
-- least important are dropped, then the oldest, and never what is pinned. `lifetimes` and `vectors` are in the order of the items, null
-- where there is none.
create or replace function holdfast.remember(
  tenant uuid, of_scope text, of_owner uuid, max_count int, items json, lifetimes interval[], vectors halfvec[]
) returns table (is_new boolean, stored public.memory) language plpgsql
set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  place int := 0;
  item public.memory;
  added uuid[] := '{}';
  excess uuid[];
begin
  for item in select g.* from json_populate_recordset(null::public.memory, items) g loop
    place := place + 1;
    item.expires_at := coalesce(item.expires_at, holdfast.now() + lifetimes[place], 'infinity');
    loop
      insert into public.memory (
        tenant_id, scope, id, owner, agent_id, user_id, version, length, importance, access_count, last_accessed, created_at, valid_from,
        valid_to, expires_at, buried_at, pinned, by_owner, tells_when, seq, said_at, language, embedded, type, trust, conversation, author_terms,
        author, superseded_by, document_id, chunk_index, source, key, digest, metadata, content, terms)
      values (
        tenant, of_scope, item.id, of_owner, item.agent_id, item.user_id, coalesce(item.version, 1), item.length, item.importance,
        coalesce(item.access_count, 0), coalesce(item.last_accessed, holdfast.now()), coalesce(item.created_at, holdfast.now()),
        coalesce(item.valid_from, least(item.said_at, holdfast.now())), coalesce(item.valid_to, 'infinity'),
        item.expires_at, item.buried_at, coalesce(item.pinned, false), item.by_owner, coalesce(item.tells_when, false), item.seq, item.said_at,
        item.language, item.embedded, item.type, item.trust, item.conversation, item.author_terms, item.author, item.superseded_by,
        item.document_id, item.chunk_index, item.source, item.key, item.digest, item.metadata, item.content, item.terms)
      on conflict do nothing
      returning memory.* into stored;
      is_new := found;
      exit when is_new;
      stored := holdfast.fold_memory(tenant, of_scope, of_owner, item);
      exit when stored.id is not null;
    end loop;
    if is_new then
      if vectors[place] is not null then
        insert into public.memory_vector (tenant_id, scope, owner, memory_id, dimensions, importance, live_until, model, embedding)
        values (tenant, of_scope, of_owner, item.id, vector_dims(vectors[place]), stored.importance,
          least(stored.valid_to, stored.expires_at, stored.buried_at), item.embedded, vectors[place]);
      end if;
      added := added || item.id;
      if item.embedded is null or rtrim(item.embedded) like '%+previous' then
        perform holdfast.embed_next_anew(stored);
      end if;
    end if;
    return next;
  end loop;
  insert into public.memory_term (tenant_id, scope, owner, term, memory_id)
  select tenant, of_scope, of_owner, t.term, m.id
  from public.memory m, unnest(m.terms) as t (term)
  where m.tenant_id = tenant and m.scope = of_scope and m.owner = of_owner and m.id = any(added)
  on conflict do nothing;
  if max_count is not null then
    excess := array(
      select m.id from public.memory m
      where m.tenant_id = tenant and m.scope = of_scope and m.owner = of_owner and m.expires_at > holdfast.now() and not m.pinned
        and m.valid_to > holdfast.now() and m.buried_at is null
      order by m.importance desc, m.created_at desc, m.id desc offset max_count);
    if cardinality(excess) > 0 then
      perform holdfast.delete_memories(tenant, of_scope, of_owner, excess, 'limit');
    end if;
  end if;
end $$;
revoke execute on function holdfast.remember from public;
grant execute on function holdfast.remember to holdfast_app;
