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

-- Stores the current tools of a source, by operation. An existing tool keeps its name. A new one gets the wanted name or, if that is taken, the name
-- with the source's name as prefix, or with that and a hash of the operation. A tool that the source no longer has is deleted. It is only deactivated
-- if a skill has it, an agent names it, or an administrator has set its permissions or deactivated it; if its operation comes back, it returns to its
-- former state. A method of a service that another tool has stays with that tool. Returns the `change` of each tool: added, changed, same, removed or deactivated.
create or replace function holdfast.store_tools(
  tenant uuid, source uuid, operations text[], wanted text[], items jsonb[], person text
) returns table (name text, operation text, change text) language plpgsql as $$
#variable_conflict use_column
declare
  lost uuid[];
  kept uuid[];
  ids uuid[];
  names text[];
  taken text[] := '{}';
  choices text[];
  choice text;
  prefix text;
  hash text;
  place int;
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
    perform holdfast.write_tools(tenant, kept, array_fill('{"active": false, "gone": true}'::jsonb, array[cardinality(kept)]), person);
  end if;
  select array_agg(coalesce(t.tool_id, holdfast.uuid7()) order by g.place), array_agg(t.name::text order by g.place),
    array_agg(g.item || case when t.gone then '{"active": true, "gone": false}'::jsonb else '{}' end || case when exists (
      select from public.tool_t o
      where o.host_id = tenant and o.service = g.item ->> 'service' and (o.source_id, o.operation) is distinct from (source, g.operation)
    ) then '{"service": null}'::jsonb else '{}' end order by g.place)
  into ids, names, items
  from unnest(operations, items) with ordinality g (operation, item, place)
    left join public.tool_t t on t.host_id = tenant and t.source_id = source and t.operation = g.operation;
  if ids is null then
    return;
  end if;
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
  return query
    select names[w.place], operations[w.place], w.change
    from holdfast.write_tools(tenant, ids, array(
      select g.item || jsonb_build_object('name', g.name, 'origin', 'source', 'source_id', source, 'operation', g.operation)
      from unnest(items, names, operations) with ordinality g (item, name, operation, place) order by g.place
    ), person) with ordinality w (id, version, change, place);
end $$;
revoke execute on function holdfast.store_tools from public;
grant execute on function holdfast.store_tools to holdfast_app;
