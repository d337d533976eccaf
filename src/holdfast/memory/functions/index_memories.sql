-- Writes the results of the Indexer, given as JSON with the columns of `memory`, and returns the ids of the written memories. Skips a memory that
-- was changed since it was read: its version, its content or the model of its vector (`formers`) differs. `formers` and `vectors` are in the
-- order of the items, with null for none. A new vector replaces the one of the former model, never the client's own (model ''). If another
-- memory has the same digest, the memory keeps its unique one and is not merged: the client that inserted it by plain SQL must find it by its id. `graph` is what the memories name (link_graph).
drop function if exists holdfast.index_memories(uuid, json, text[], halfvec[]);
create or replace function holdfast.index_memories(tenant uuid, items json, formers text[], vectors halfvec[], graph json default null)
returns uuid[]
language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  place int := 0;
  item public.memory;
  stored public.memory;
  written uuid[] := '{}';
begin
  for item in select g.* from json_populate_recordset(null::public.memory, items) g loop
    place := place + 1;
    update public.memory m set
      language = item.language,
      length = coalesce(item.length, m.length),
      tells_when = coalesce(item.tells_when, m.tells_when),
      terms = coalesce(item.terms, m.terms),
      embedded = coalesce(item.embedded, m.embedded)
    where m.tenant_id = tenant and m.scope = item.scope and m.owner = item.owner and m.id = item.id
      and m.version = item.version and m.content = item.content and m.embedded is not distinct from formers[place]
    returning m.* into stored;
    continue when not found;
    written := written || item.id;
    if item.digest is not null then
      begin
        update public.memory m set digest = item.digest
        where m.tenant_id = tenant and m.scope = item.scope and m.owner = item.owner and m.id = item.id;
      exception when unique_violation then
        null;
      end;
    end if;
    insert into public.memory_term (tenant_id, scope, owner, term, memory_id)
    select tenant, item.scope, item.owner, t.term, item.id from unnest(item.terms) as t (term)
    on conflict do nothing;
    if vectors[place] is not null then
      insert into public.memory_vector as v (tenant_id, scope, owner, memory_id, dimensions, importance, live_until, model, embedding)
      values (tenant, item.scope, item.owner, item.id, vector_dims(vectors[place]), stored.importance,
        least(stored.valid_to, stored.expires_at, stored.buried_at), item.embedded, vectors[place])
      on conflict (tenant_id, scope, owner, model, memory_id, dimensions) do update set embedding = excluded.embedding;
      delete from public.memory_vector v
      where v.tenant_id = tenant and v.scope = item.scope and v.owner = item.owner and v.model = rtrim(formers[place])
        and v.model <> item.embedded and v.memory_id = item.id;
    end if;
  end loop;
  if graph is not null and written <> '{}' then
    perform holdfast.link_graph(tenant, written, graph);
  end if;
  return written;
end $$;
revoke execute on function holdfast.index_memories from public;
grant execute on function holdfast.index_memories to holdfast_app;
