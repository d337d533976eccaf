-- Returns a name with a prefix. A name that is too long for models is cut and gets a hash.
create or replace function holdfast.led_name(prefix text, name text) returns text language plpgsql immutable as $$
declare
  whole constant text := prefix || '_' || name;
begin
  return case when length(whole) <= 64 then whole
    else left(whole, 57) || '_' || left(encode(sha256(convert_to(whole, 'UTF8')), 'hex'), 6) end;
end $$;
revoke execute on function holdfast.led_name from public;
grant execute on function holdfast.led_name to holdfast_app;

-- Returns the names of tools of a source, by operation. An existing tool keeps its name. A new one gets the wanted name or, if that is taken, the name
-- with the source's name as prefix, or with that and a hash of the operation. The caller must hold the registry's lock.
create or replace function holdfast.imported_names(tenant uuid, source uuid, operations text[], wanted text[]) returns text[] language plpgsql stable as $$
#variable_conflict use_column
declare
  names text[];
  taken text[] := '{}';
  choices text[];
  choice text;
  prefix text;
  hash text;
  place int;
begin
  select array_agg(t.name::text order by g.place) into names
  from unnest(operations) with ordinality g (operation, place)
    left join public.tool_t t on t.host_id = tenant and t.source_id = source and t.operation = g.operation;
  select o.name into prefix from public.tool_source o where o.host_id = tenant and o.source_id = source;
  for place in select g.place from unnest(names) with ordinality g (name, place) where g.name is null loop
    hash := left(encode(sha256(convert_to(prefix || ' ' || operations[place], 'UTF8')), 'hex'), 6);
    choices := array[wanted[place], holdfast.led_name(prefix, wanted[place]), holdfast.led_name(prefix || '_' || hash, wanted[place])];
    select c.choice into choice from unnest(choices) with ordinality c (choice, number)
    where c.choice <> all(taken) and (c.number = 1 or c.choice <> all(wanted))
      and not exists (select from public.tool_t t where t.host_id = tenant and t.name = c.choice)
    order by c.number limit 1;
    if choice is null then
      raise unique_violation using message = format('the name %s is taken', wanted[place]);
    end if;
    names[place] := choice;
    taken := taken || choice;
  end loop;
  return names;
end $$;
revoke execute on function holdfast.imported_names from public;
grant execute on function holdfast.imported_names to holdfast_app;

-- Stores tools of a source, by operation, under these names (see holdfast.imported_names), and pins them: `person` has approved their definitions. A tool
-- whose operation has come back returns to its former state. A method of a service that another tool has stays with that tool.
-- Returns the `change` of each tool: added, changed or same. The caller must hold the registry's lock.
create or replace function holdfast.write_imported(
  tenant uuid, source uuid, operations text[], names text[], items jsonb[], warnings jsonb[], person text
) returns table (name text, operation text, change text) language plpgsql as $$
#variable_conflict use_column
declare
  ids uuid[];
  changes text[];
begin
  select array_agg(coalesce(t.tool_id, holdfast.uuid7()) order by g.place),
    array_agg(g.item || case when t.gone then '{"active": true, "gone": false}'::jsonb else '{}' end
      || case when t.held then '{"held": false}'::jsonb else '{}' end || case when exists (
      select from public.tool_t o
      where o.host_id = tenant and o.service = g.item ->> 'service' and (o.source_id, o.operation) is distinct from (source, g.operation)
    ) then '{"service": null}'::jsonb else '{}' end order by g.place)
  into ids, items
  from unnest(operations, items) with ordinality g (operation, item, place)
    left join public.tool_t t on t.host_id = tenant and t.source_id = source and t.operation = g.operation;
  if ids is null then
    return;
  end if;
  select array_agg(w.change order by w.place) into changes
  from holdfast.write_tools(tenant, ids, array(
    select g.item || jsonb_build_object('name', g.name, 'origin', 'source', 'source_id', source, 'operation', g.operation)
    from unnest(items, names, operations) with ordinality g (item, name, operation, place) order by g.place
  ), person) with ordinality w (id, version, change, place);
  insert into public.tool_pin as p (host_id, tool_id, hash, warnings, approved_by)
  select tenant, t.tool_id, holdfast.definition_hash(source, holdfast.stored_definition(tenant, t.tool_id)), g.warnings, person
  from unnest(ids, warnings) g (id, warnings) join public.tool_t t on t.host_id = tenant and t.tool_id = g.id
  on conflict (host_id, tool_id) do update set
    hash = excluded.hash, warnings = excluded.warnings,
    approved_by = case when p.hash = excluded.hash then p.approved_by else excluded.approved_by end,
    approved_at = case when p.hash = excluded.hash then p.approved_at else excluded.approved_at end
  where (p.hash, p.warnings) is distinct from (excluded.hash, excluded.warnings);
  return query select w.name, w.operation, w.change from unnest(names, operations, changes) w (name, operation, change);
end $$;
revoke execute on function holdfast.write_imported from public;
grant execute on function holdfast.write_imported to holdfast_app;

-- Stores the current tools of a source (see holdfast.write_imported), except for those that are held (see holdfast.hold_tools). A tool that the source no
-- longer has is deleted. It is only deactivated if a skill has it, an agent names it, or an administrator has set its permissions or deactivated it.
-- Returns the `change` of each tool: added, changed, same, removed or deactivated; held; or still held, if it was already, with the same definition.
create or replace function holdfast.store_tools(
  tenant uuid, source uuid, operations text[], wanted text[], items jsonb[], warnings jsonb[], approves text, holds_flagged boolean, person text
) returns table (name text, operation text, change text) language plpgsql as $$
#variable_conflict use_column
declare
  lost uuid[];
  kept uuid[];
  names text[];
  changes text[];
begin
  perform holdfast.lock_registry(tenant);
  select array_agg(t.tool_id) filter (where not w.is_wanted), array_agg(t.tool_id) filter (where w.is_wanted and t.active)
  into lost, kept
  from public.tool_t t cross join lateral (
    select t.permissions <> '{}' or not t.active and not t.gone
      or exists (select from public.skill_tool_t k where k.host_id = tenant and k.tool_id = t.tool_id)
      or exists (select from public.agent_definition_t a where a.host_id = tenant and a.settings -> 'tools' ? t.name::text) as is_wanted
  ) w
  where t.host_id = tenant and t.source_id = source and t.operation <> all(operations);
  return query
    select t.name::text, t.operation, case when t.tool_id = any(lost) then 'removed' else 'deactivated' end
    from public.tool_t t where t.host_id = tenant and t.tool_id = any(lost || kept) order by t.name;
  if lost is not null then
    perform holdfast.delete_tools(tenant, lost, person);
  end if;
  if kept is not null then
    perform holdfast.write_tools(tenant, kept, array_fill('{"active": false, "gone": true, "held": false}'::jsonb, array[cardinality(kept)]), person);
  end if;
  names := holdfast.imported_names(tenant, source, operations, wanted);
  select array_agg(h.change order by h.place) into changes
  from holdfast.hold_tools(tenant, source, operations, names, items, warnings, approves, holds_flagged, person) h;
  return query
    select g.name, g.operation, g.change from unnest(names, operations, changes) g (name, operation, change) where g.change is not null;
  return query
    select w.* from (
      select array_agg(g.operation order by g.place) as operations, array_agg(g.name order by g.place) as names,
        array_agg(g.item order by g.place) as items, array_agg(g.warnings order by g.place) as warnings
      from unnest(operations, names, items, warnings, changes) with ordinality g (operation, name, item, warnings, change, place)
      where g.change is null
    ) p cross join lateral holdfast.write_imported(tenant, source, p.operations, p.names, p.items, p.warnings, person) w
    where p.operations is not null;
end $$;
revoke execute on function holdfast.store_tools from public;
grant execute on function holdfast.store_tools to holdfast_app;
