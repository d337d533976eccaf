-- Links memories, or the chunks of a document, to the entities that they name; makes the entities that are missing. `items` are, for each
-- memory, {"memory": id, "entities": [{"key", "name", "type", "count", "aliases": [{"key", "name"}]}], "relations": [{"source", "type",
-- "target", "description"}]} with keys of entities. Rows are written in the order of their keys, so that concurrent calls do not deadlock.
-- Returns the number of new links.
create or replace function holdfast.link_entities(tenant uuid, of_scope text, of_owner uuid, document uuid, items json) returns int
language plpgsql set enable_seqscan = off as $$
declare
  keys text[];
  names text[];
  types text[];
  found_keys text[];
  ids uuid[];
  linked int;
  joined uuid[];
begin
  select array_agg(n.key order by n.key), array_agg(n.name order by n.key), array_agg(n.type order by n.key) into keys, names, types
  from (
    select distinct on (every.key) every.key, every.name, every.type
    from (
      select e.key, e.name, e.type
      from json_array_elements(items) i, json_to_recordset(i.value -> 'entities') as e (key text, name text, type text)
      union all
      select a.key, a.name, e.type
      from json_array_elements(items) i, json_to_recordset(i.value -> 'entities') as e (type text, aliases json),
        json_to_recordset(e.aliases) as a (key text, name text)
    ) every
    where every.key <> ''
    order by every.key, every.type = 'Name'
  ) n;
  if keys is null then
    return 0;
  end if;
  for attempt in 1 .. 10 loop
    insert into public.entities (tenant_id, scope, owner, key, canonical, name, type)
    select tenant, of_scope, of_owner, n.key, n.key, left(n.name, 255), n.type
    from unnest(keys, names, types) as n (key, name, type)
    order by n.key
    on conflict do nothing;
    -- Whoever deletes entities without links takes a stronger lock. One that was deleted meanwhile is made again.
    select array_agg(e.key), array_agg(e.id) into found_keys, ids
    from (
      select g.key, g.id from public.entities g
      where g.tenant_id = tenant and g.scope = of_scope and g.owner = of_owner and g.key = any(keys)
      order by g.key for key share
    ) e;
    exit when cardinality(found_keys) = cardinality(keys);
  end loop;
  update public.entities e set type = n.type
  from unnest(keys, types) as n (key, type)
  where e.tenant_id = tenant and e.scope = of_scope and e.owner = of_owner and e.key = n.key and e.type = 'Name' and n.type <> 'Name';
  with given as (
    select distinct on (g.memory, k.id) g.memory, k.id as entity, g.count
    from (
      select (i.value ->> 'memory')::uuid as memory, e.key, coalesce(e.count, 1) as count
      from json_array_elements(items) i, json_to_recordset(i.value -> 'entities') as e (key text, count int)
      union all
      select (i.value ->> 'memory')::uuid, a.key, 1
      from json_array_elements(items) i, json_to_recordset(i.value -> 'entities') as e (aliases json),
        json_to_recordset(e.aliases) as a (key text)
    ) g join unnest(found_keys, ids) as k (key, id) on k.key = g.key
    order by g.memory, k.id, g.count desc
  ), added as (
    insert into public.memory_entities (tenant_id, memory_id, entity_id, scope, owner, document_id, mentions, live_until)
    select tenant, g.memory, g.entity, of_scope, of_owner, document, g.count,
      case when document is null then coalesce((
        select least(m.valid_to, m.expires_at, m.buried_at) from public.memory m
        where m.tenant_id = tenant and m.scope = of_scope and m.owner = of_owner and m.id = g.memory), 'infinity') else 'infinity' end
    from given g
    on conflict do nothing
    returning 1
  )
  select count(*) into linked from added;
  perform holdfast.link_relations(tenant, of_scope, of_owner, document, items, found_keys, ids);
  with stated as (
    select distinct on (o.id, k.id) k.id as keep, o.id as other, (i.value ->> 'memory')::uuid as memory
    from json_array_elements(items) i, json_to_recordset(i.value -> 'entities') as e (key text, aliases json),
      json_to_recordset(e.aliases) as a (key text), unnest(found_keys, ids) as k (key, id), unnest(found_keys, ids) as o (key, id)
    where k.key = e.key and o.key = a.key and k.id <> o.id
    order by o.id, k.id
  ), merged as (
    insert into public.entity_merges (tenant_id, keep_id, other_id, memory_id, document_id)
    select tenant, s.keep, s.other, s.memory, document from stated s
    where not exists (
      select from public.entity_merges m
      where m.tenant_id = tenant and m.other_id = s.other and m.keep_id = s.keep
        and (m.undone_at is not null or m.memory_id is null or m.memory_id = s.memory))
    returning other_id
  )
  select array_agg(m.other_id) into joined from merged m;
  if joined is not null then
    perform holdfast.settle_merges(tenant, joined);
  end if;
  return linked;
end $$;
revoke execute on function holdfast.link_entities from public;
grant execute on function holdfast.link_entities to holdfast_app;
