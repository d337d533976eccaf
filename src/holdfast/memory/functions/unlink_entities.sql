-- Removes what the graph has of memories, or of the chunks of a document: links, relations, merges that they state, and entities that
-- nothing else names. Returns the number of removed links. Call it before the chunks of a document are replaced or deleted.
create or replace function holdfast.unlink_entities(tenant uuid, memories uuid[], document uuid) returns int language plpgsql
set enable_seqscan = off as $$
declare
  named uuid[];
  gone int;
  sources uuid[];
  targets uuid[];
  types text[];
  parted uuid[];
begin
  if document is null then
    with deleted as (
      delete from public.memory_entities l where l.tenant_id = tenant and l.memory_id = any(memories) returning l.entity_id
    )
    select array_agg(distinct d.entity_id), count(*) into named, gone from deleted d;
  else
    with deleted as (
      delete from public.memory_entities l where l.tenant_id = tenant and l.document_id = document returning l.entity_id
    )
    select array_agg(distinct d.entity_id), count(*) into named, gone from deleted d;
  end if;
  if gone = 0 then
    return 0;
  end if;
  if document is null then
    with deleted as (
      delete from public.relationship_sources s where s.tenant_id = tenant and s.memory_id = any(memories)
      returning s.source_id, s.target_id, s.relation_type
    )
    select array_agg(d.source_id), array_agg(d.target_id), array_agg(d.relation_type) into sources, targets, types
    from (select distinct * from deleted) d;
    with deleted as (
      delete from public.entity_merges m where m.tenant_id = tenant and m.memory_id = any(memories) returning m.other_id
    )
    select array_agg(distinct d.other_id) into parted from deleted d;
  else
    with deleted as (
      delete from public.relationship_sources s where s.tenant_id = tenant and s.document_id = document
      returning s.source_id, s.target_id, s.relation_type
    )
    select array_agg(d.source_id), array_agg(d.target_id), array_agg(d.relation_type) into sources, targets, types
    from (select distinct * from deleted) d;
    with deleted as (
      delete from public.entity_merges m where m.tenant_id = tenant and m.document_id = document returning m.other_id
    )
    select array_agg(distinct d.other_id) into parted from deleted d;
  end if;
  if sources is not null then
    perform holdfast.delete_unstated(tenant, sources, targets, types);
  end if;
  if parted is not null then
    perform holdfast.settle_merges(tenant, parted);
  end if;
  perform holdfast.delete_unnamed(tenant, named);
  return gone;
end $$;
revoke execute on function holdfast.unlink_entities from public;
grant execute on function holdfast.unlink_entities to holdfast_app;

-- Deletes those of these relationships that no memory states any more. One that another transaction is about to state is left.
create or replace function holdfast.delete_unstated(tenant uuid, sources uuid[], targets uuid[], types text[]) returns void
language plpgsql set enable_seqscan = off as $$
begin
  perform from public.relationships r
  where r.tenant_id = tenant and (r.source_id, r.target_id, r.relation_type) in (
    select g.source, g.target, g.type from unnest(sources, targets, types) as g (source, target, type))
  order by r.source_id, r.target_id, r.relation_type for update skip locked;
  delete from public.relationships r
  using unnest(sources, targets, types) as g (source, target, type)
  where r.tenant_id = tenant and r.source_id = g.source and r.target_id = g.target and r.relation_type = g.type
    and not exists (
      select from public.relationship_sources s
      where s.tenant_id = tenant and s.source_id = r.source_id and s.target_id = r.target_id and s.relation_type = r.relation_type);
end $$;
revoke execute on function holdfast.delete_unstated from public;
grant execute on function holdfast.delete_unstated to holdfast_app;

-- Deletes those of these entities that nothing names any more and that nobody has merged by hand. One that another transaction is about to
-- link is left: its lock is respected, and after ours, nobody can link it until we are done. Returns how many were deleted.
create or replace function holdfast.delete_unnamed(tenant uuid, ids uuid[]) returns int language plpgsql
set enable_seqscan = off as $$
declare
  locked uuid[];
  gone int;
begin
  locked := array(
    select e.id from public.entities e
    where e.tenant_id = tenant and e.id = any(ids)
      and not exists (select from public.memory_entities l where l.tenant_id = tenant and l.entity_id = e.id)
    order by e.key for update skip locked);
  if locked = '{}' then
    return 0;
  end if;
  delete from public.entities e
  where e.tenant_id = tenant and e.id = any(locked)
    and not exists (select from public.memory_entities l where l.tenant_id = tenant and l.entity_id = e.id)
    and not exists (select from public.entity_merges m where m.tenant_id = tenant and m.other_id = e.id and m.undone_at is null)
    and not exists (select from public.entity_merges m where m.tenant_id = tenant and m.keep_id = e.id and m.undone_at is null);
  get diagnostics gone = row_count;
  return gone;
end $$;
revoke execute on function holdfast.delete_unnamed from public;
grant execute on function holdfast.delete_unnamed to holdfast_app;
