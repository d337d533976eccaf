-- Stores the relations of `items` (link_entities) between entities with these keys and ids, and which memory states each.
create or replace function holdfast.link_relations(
  tenant uuid, of_scope text, of_owner uuid, document uuid, items json, keys text[], ids uuid[]
) returns void language plpgsql set enable_seqscan = off as $$
declare
  sources uuid[];
  targets uuid[];
  types text[];
  memories uuid[];
  descriptions text[];
begin
  select array_agg(g.source), array_agg(g.target), array_agg(g.type), array_agg(g.memory), array_agg(g.description)
  into sources, targets, types, memories, descriptions
  from (
    select distinct on (s.id, t.id, r.type, memory) s.id as source, t.id as target, r.type, (i.value ->> 'memory')::uuid as memory, r.description
    from json_array_elements(items) i, json_to_recordset(i.value -> 'relations') as r (source text, type text, target text, description text),
      unnest(keys, ids) as s (key, id), unnest(keys, ids) as t (key, id)
    where s.key = r.source and t.key = r.target and s.id <> t.id
    order by s.id, t.id, r.type, memory
  ) g;
  if sources is null then
    return;
  end if;
  for attempt in 1 .. 10 loop
    insert into public.relationships (tenant_id, source_id, target_id, relation_type, scope, owner, description)
    select tenant, g.source, g.target, g.type, of_scope, of_owner, g.description
    from unnest(sources, targets, types, descriptions) as g (source, target, type, description)
    order by g.source, g.target, g.type
    on conflict do nothing;
    perform from public.relationships r
    where r.tenant_id = tenant and (r.source_id, r.target_id, r.relation_type) in (
      select g.source, g.target, g.type from unnest(sources, targets, types) as g (source, target, type))
    order by r.source_id, r.target_id, r.relation_type for key share;
    begin
      insert into public.relationship_sources (tenant_id, memory_id, source_id, target_id, relation_type, document_id, live_until)
      select tenant, g.memory, g.source, g.target, g.type, document, coalesce((
          select l.live_until from public.memory_entities l
          where l.tenant_id = tenant and l.memory_id = g.memory and l.entity_id = g.source), 'infinity')
      from unnest(sources, targets, types, memories) as g (source, target, type, memory)
      on conflict do nothing;
      return;
    exception when foreign_key_violation then
      null; -- the relationship was deleted meanwhile: make it again
    end;
  end loop;
end $$;
revoke execute on function holdfast.link_relations from public;
grant execute on function holdfast.link_relations to holdfast_app;
