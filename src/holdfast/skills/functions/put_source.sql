-- Creates a source, or changes an existing one; `given` has its columns. With `imported` in it, the source is written even if it is unchanged: an
-- import has changed its tools.
-- `outcome`: stored; same (unchanged; of a document that differs, only the hash is written); taken (the name exists); missing; conflict (`version`
-- is the current one). `revision` is the registry's before any change: changes that the caller makes afterwards have higher revisions.
create or replace function holdfast.put_source(
  tenant uuid, called text, is_new boolean, given jsonb, expected bigint, person text,
  out outcome text, out source uuid, out version bigint, out revision bigint
) language plpgsql as $$
#variable_conflict use_column
declare
  aside constant text[] := '{document_hash,imported_at,pin,aggregate_version,update_ts,update_user}';
  unnoted constant text[] := '{report,offers}';  -- large, and servers change them often
  was public.tool_source;
  item public.tool_source;
begin
  perform holdfast.lock_registry(tenant);
  select r.revision into put_source.revision from public.registry r where r.host_id = tenant;
  select o.* into was from public.tool_source o where o.host_id = tenant and o.name = called for update;
  put_source.version := was.aggregate_version;
  source := was.source_id;
  outcome := case
    when is_new and source is not null then 'taken'
    when not is_new and source is null then 'missing'
    when was.aggregate_version <> expected then 'conflict'
    else 'stored' end;
  if outcome <> 'stored' then
    return;
  end if;
  if is_new then
    was := null;
    item := jsonb_populate_record(null::public.tool_source, jsonb_build_object(
      'host_id', tenant, 'source_id', holdfast.uuid7(), 'name', called, 'kind', 'openapi', 'location', '', 'settings', '{}'::jsonb,
      'title', '', 'report', '{}'::jsonb, 'offers', '{}'::jsonb, 'aggregate_version', 0, 'active', true, 'created_at', holdfast.now()) || given);
  else
    item := jsonb_populate_record(was, given);
    if not given ? 'imported' and to_jsonb(was) - aside = to_jsonb(item) - aside then
      outcome := 'same';
      update public.tool_source o set document_hash = item.document_hash
      where o.host_id = tenant and o.source_id = source and o.document_hash is distinct from item.document_hash;
      return;
    end if;
  end if;
  if given ? 'imported' or (item.document_hash, item.report) is distinct from (was.document_hash, was.report) then
    item.imported_at := holdfast.now();
  end if;
  item.aggregate_version := item.aggregate_version + 1;
  -- Only a change of where calls go is pinned: settings that plain SQL has changed stay different from the pinned ones.
  if is_new or holdfast.destination_hash(item.settings) <> holdfast.destination_hash(was.settings) then
    item.pin := holdfast.destination_hash(item.settings);
  end if;
  item.update_ts := holdfast.now();
  item.update_user := person;
  insert into public.tool_source values (item.*)
  on conflict (host_id, source_id) do update set
    location = excluded.location, settings = excluded.settings, title = excluded.title, document_hash = excluded.document_hash,
    report = excluded.report, offers = excluded.offers, pin = excluded.pin, aggregate_version = excluded.aggregate_version, active = excluded.active,
    imported_at = excluded.imported_at, update_ts = excluded.update_ts, update_user = excluded.update_user;
  source := item.source_id;
  put_source.version := item.aggregate_version;
  perform holdfast.note_changes(
    tenant, array['source'], array[called], array[case when not is_new then to_jsonb(was) - unnoted end],
    array[to_jsonb(item) - unnoted], person);
end $$;
revoke execute on function holdfast.put_source from public;
grant execute on function holdfast.put_source to holdfast_app;
