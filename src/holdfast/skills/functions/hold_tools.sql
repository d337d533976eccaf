-- Finds which tools of an import nobody has approved, and keeps a proposal for each of them: its tool is held until somebody decides. The others pass.
-- A tool passes if its definition is the pinned one, or if the import itself is an approval (`approves`): `all`; `settings`: all but those with a
-- proposal, because only the settings have changed and not the document; `none`. With `holds_flagged`, an import approves no tool with warnings.
-- A new definition replaces that of an earlier proposal. A proposal whose definition is no longer offered is withdrawn.
-- `names` are those that the tools have, or would get (see holdfast.imported_names).
-- Returns for each tool its `change`: null if it passes; held; still held, if its proposal has the same definition as before.
create or replace function holdfast.hold_tools(
  tenant uuid, source uuid, operations text[], names text[], items jsonb[], warnings jsonb[], approves text, holds_flagged boolean, person text
) returns table (place bigint, change text) language plpgsql as $$
#variable_conflict use_column
declare
  held uuid[];
  places bigint[];
  passed boolean[];
  pins text[];
  hashes text[];
  proposed text[];
  olds jsonb[];
  news jsonb[];
begin
  select array_agg(g.place order by g.place), array_agg(o.pinned order by g.place),
    array_agg(o.hash order by g.place), array_agg(r.hash order by g.place),
    array_agg(case when not o.passed then holdfast.stored_definition(tenant, t.tool_id) end order by g.place),
    array_agg(case when not o.passed then o.definition end order by g.place), array_agg(o.passed order by g.place),
    array_agg(t.tool_id) filter (where not o.passed and not t.held)
  into places, pins, hashes, proposed, olds, news, passed, held
  from unnest(operations, names, items, warnings) with ordinality g (operation, name, item, warnings, place)
    left join public.tool_t t on t.host_id = tenant and t.source_id = source and t.operation = g.operation
    left join public.tool_pin p on p.host_id = tenant and p.tool_id = t.tool_id
    left join public.tool_proposal r
      on r.host_id = tenant and r.source_id = source and r.operation = g.operation and r.state in ('open', 'rejected')
    cross join lateral (
      select p.hash as pinned, d.definition, d.hash,
        coalesce(p.hash = d.hash, false) or not (holds_flagged and g.warnings <> '[]')
          and (approves = 'all' or approves = 'settings' and r.proposal_id is null) as passed
      from (
        select c.definition, holdfast.definition_hash(source, c.definition) as hash
        from (select holdfast.tool_definition(g.item, g.name, g.operation) as definition offset 0) c offset 0
      ) d offset 0 -- so that each is computed once
    ) o;
  update public.tool_proposal r set
    state = case when g.passed and g.hash is distinct from g.pinned then 'approved' else 'withdrawn' end,
    decided_at = holdfast.now(), decided_by = person
  from public.tool_proposal o left join unnest(operations, passed, hashes, pins) g (operation, passed, hash, pinned) on g.operation = o.operation
  where o.host_id = tenant and o.source_id = source and o.state in ('open', 'rejected') and g.passed is not false
    and r.host_id = tenant and r.proposal_id = o.proposal_id;
  insert into public.tool_proposal as r (host_id, source_id, operation, name, pinned, hash, old, new, item, warnings, found_by)
  select tenant, source, g.operation, g.name, g.pinned, g.hash, g.old, g.new, g.item, g.warnings, person
  from unnest(operations, names, items, warnings, pins, hashes, olds, news, passed)
    g (operation, name, item, warnings, pinned, hash, old, new, passed)
  where not g.passed
  on conflict (host_id, source_id, operation) where state in ('open', 'rejected') do update set
    name = excluded.name, pinned = excluded.pinned, hash = excluded.hash, old = excluded.old, new = excluded.new, item = excluded.item,
    warnings = excluded.warnings,
    state = case when r.hash = excluded.hash then r.state else 'open' end,
    found_at = case when r.hash = excluded.hash then r.found_at else excluded.found_at end,
    found_by = case when r.hash = excluded.hash then r.found_by else excluded.found_by end,
    decided_at = case when r.hash = excluded.hash then r.decided_at end, decided_by = case when r.hash = excluded.hash then r.decided_by end
  where (r.hash, r.item, r.warnings, r.old) is distinct from (excluded.hash, excluded.item, excluded.warnings, excluded.old);
  if held is not null then
    perform holdfast.write_tools(tenant, held, array_fill('{"held": true}'::jsonb, array[cardinality(held)]), person);
  end if;
  -- A server decides how often its tools change, so that the decided proposals of a source are limited.
  delete from public.tool_proposal r using (
    select o.proposal_id from public.tool_proposal o
    where o.host_id = tenant and o.source_id = source and o.state in ('approved', 'withdrawn') order by o.found_at desc, o.proposal_id desc offset 100
  ) old
  where r.host_id = tenant and r.proposal_id = old.proposal_id;
  return query
    select g.place, case when g.passed then null when g.hash = g.proposed then 'still held' else 'held' end
    from unnest(places, passed, hashes, proposed) g (place, passed, hash, proposed);
end $$;
revoke execute on function holdfast.hold_tools from public;
grant execute on function holdfast.hold_tools to holdfast_app;
