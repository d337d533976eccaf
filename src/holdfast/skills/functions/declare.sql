-- Functions that store the declarations of an app as rows of the origin `code`, in one transaction: tools, skills, links. Unchanged rows are not
-- written again, and changes by an administrator are kept. Apps with different names (`program`) leave each other's rows alone; those without a name
-- share theirs. `is_whole`: these are all declarations of the app, so rows that it no longer declares become `gone` and inactive.

-- Stores the tools of an app. A tool of someone else is left alone and returned with its origin in `taken` and the app or source in `owner`. If a
-- tool of someone else has the method of a declared tool, `taken` is `service` and `owner` is that tool. Only tools in the modules of these tools can
-- become gone, because an app can be served in parts.
create or replace function holdfast.declare_tools(tenant uuid, program text, items jsonb[], is_whole boolean)
returns table (name text, id uuid, version bigint, taken text, owner text) language plpgsql as $$
#variable_conflict use_column
declare
  ids uuid[];
  stale uuid[];
  moved uuid[];
begin
  perform holdfast.lock_registry(tenant);
  return query
    select t.name::text, t.tool_id, t.aggregate_version, t.origin, case when t.origin = 'code' then t.app_name else o.name::text end
    from public.tool_t t left join public.tool_source o on o.host_id = tenant and o.source_id = t.source_id
    where t.host_id = tenant and (t.origin <> 'code' or program <> '' and t.app_name not in ('', program))
      and t.name = any(select g.item ->> 'name' from unnest(items) g (item))
    order by t.name;
  if found then
    return;
  end if;
  return query
    select g.item ->> 'name', t.tool_id, t.aggregate_version, 'service', t.name::text
    from unnest(items) g (item) join public.tool_t t on t.host_id = tenant and t.service = g.item ->> 'service'
    where t.name <> g.item ->> 'name' and (t.origin <> 'code' or program <> '' and t.app_name not in ('', program))
    order by t.name;
  if found then
    return;
  end if;
  -- A method that moves from one tool of the app to another is first cleared, because the tools are written one after the other.
  moved := array(
    select t.tool_id from unnest(items) g (item) join public.tool_t t on t.host_id = tenant and t.service = g.item ->> 'service'
    where t.name <> g.item ->> 'name');
  perform holdfast.write_tools(tenant, moved, array_fill('{"service": null}'::jsonb, array[cardinality(moved)]), 'code');
  if is_whole then
    stale := array(
      select t.tool_id from public.tool_t t
      where t.host_id = tenant and t.origin = 'code' and t.app_name = program and t.active
        and t.name <> all(select g.item ->> 'name' from unnest(items) g (item))
        and split_part(t.implementation_class, ':', 1) in (
          select split_part(g.item ->> 'implementation_class', ':', 1) from unnest(items) g (item)));
    perform holdfast.write_tools(
      tenant, stale, array_fill('{"active": false, "gone": true}'::jsonb, array[cardinality(stale)]), 'code');
  end if;
  ids := array(
    select coalesce(t.tool_id, holdfast.uuid7()) from unnest(items) with ordinality g (item, place)
      left join public.tool_t t on t.host_id = tenant and t.name = g.item ->> 'name'
    order by g.place);
  return query
    select items[w.place] ->> 'name', w.id, w.version, null::text, null::text
    from holdfast.write_tools(tenant, ids, array(
      select g.item || jsonb_build_object('origin', 'code', 'app_name', program)
        || case when t.gone then '{"active": true, "gone": false}'::jsonb else '{}' end
      from unnest(items) with ordinality g (item, place)
        left join public.tool_t t on t.host_id = tenant and t.name = g.item ->> 'name'
      order by g.place
    ), 'code') with ordinality w (id, version, change, place);
end $$;
revoke execute on function holdfast.declare_tools from public;
grant execute on function holdfast.declare_tools to holdfast_app;

-- Stores the skills of an app, parents first. `below[n]` is the parent of the nth skill; `owners` are the names of the skills that have the files.
-- `outcome`: stored; or what is wrong with `subject`: taken (someone has stored it, or the app `owner` declares it), parent (does not exist), circle
-- (`names` as in holdfast.put_skill). The name of the app alone decides which skills become gone; without a name, none do.
create or replace function holdfast.declare_skills(
  tenant uuid, program text, called text[], below text[], items jsonb[], owners text[], paths text[], contents bytea[], executables boolean[],
  is_whole boolean, out outcome text, out subject text, out owner text, out names text[]
) language plpgsql as $$
#variable_conflict use_column
declare
  was public.skill_t;
  parent uuid;
  place int;
begin
  perform holdfast.lock_registry(tenant);
  for place in 1 .. coalesce(cardinality(called), 0) loop
    subject := called[place];
    select s.* into was from public.skill_t s where s.host_id = tenant and s.name = subject for update;
    select s.skill_id into parent from public.skill_t s where s.host_id = tenant and s.name = below[place];
    names := holdfast.way_between(tenant, 'parent', parent, was.skill_id);
    outcome := case
      when was.origin = 'db' or program <> '' and was.app_name not in ('', program) then 'taken'
      when names is not null then 'circle'
      when below[place] is not null and parent is null then 'parent' end;
    owner := was.app_name;
    exit when outcome is not null;
    perform holdfast.write_skill(
      tenant, subject,
      items[place] || jsonb_build_object('origin', 'code', 'app_name', program, 'parent_skill_id', parent)
        || case when was.gone then '{"active": true, "gone": false}'::jsonb else '{}' end,
      array(select f.path from unnest(owners, paths) with ordinality f (owner, path, n) where f.owner = subject order by f.n),
      array(select f.content from unnest(owners, contents) with ordinality f (owner, content, n) where f.owner = subject order by f.n),
      array(select f.executable from unnest(owners, executables) with ordinality f (owner, executable, n) where f.owner = subject order by f.n),
      'code');
  end loop;
  if outcome is null and is_whole and program <> '' then
    perform holdfast.write_skill(tenant, s.name, '{"active": false, "gone": true}', null, null, null, 'code')
    from public.skill_t s
    where s.host_id = tenant and s.origin = 'code' and s.app_name = program and s.active and s.name <> all(called);
  end if;
  outcome := coalesce(outcome, 'stored');
end $$;
revoke execute on function holdfast.declare_skills from public;
grant execute on function holdfast.declare_skills to holdfast_app;

-- Links the skills of an app: tools, as lists of name, granted access and config; dependencies, as lists of name and whether it is required; and its
-- agents, to skills in order. A link that someone else has changed is kept. A link that is no longer declared is removed if an app wrote it last.
-- `outcome`: stored; or why `owner` cannot be linked to `other`: missing (`absent`), circle (`names`).
create or replace function holdfast.declare_links(
  tenant uuid, called text[], tools jsonb[], needs jsonb[], agents text[], assigned jsonb[],
  out outcome text, out owner text, out other text, out absent text, out names text[]
) language plpgsql as $$
#variable_conflict use_column
declare
  stale record;
  link record;
begin
  perform holdfast.lock_registry(tenant);
  for stale in
    select 'skill_tool' as kind, s.name as owner, t.name as other
    from public.skill_t s join public.skill_tool_t k on k.host_id = tenant and k.skill_id = s.skill_id
      join public.tool_t t on t.host_id = tenant and t.tool_id = k.tool_id
    where s.host_id = tenant and s.name = any(called) and k.update_user = 'code' and not exists (
      select from jsonb_array_elements(tools[array_position(called, s.name::text)]) e where e ->> 0 = t.name)
    union all
    select 'skill_dependency', s.name, n.name
    from public.skill_t s join public.skill_dependency_t d on d.host_id = tenant and d.skill_id = s.skill_id
      join public.skill_t n on n.host_id = tenant and n.skill_id = d.depends_on_skill_id
    where s.host_id = tenant and s.name = any(called) and d.update_user = 'code' and not exists (
      select from jsonb_array_elements(needs[array_position(called, s.name::text)]) e where e ->> 0 = n.name)
    union all
    select 'agent_skill', a.name, s.name
    from public.agent_definition_t a join public.agent_skill_t g on g.host_id = tenant and g.agent_def_id = a.agent_def_id
      join public.skill_t s on s.host_id = tenant and s.skill_id = g.skill_id
    where a.host_id = tenant and a.name = any(agents) and g.update_user = 'code' and not exists (
      select from jsonb_array_elements_text(assigned[array_position(agents, a.name)]) e where e = s.name)
  loop
    perform holdfast.unlink(tenant, stale.kind, stale.owner, stale.other, null, 'code');
  end loop;
  for link in
    select called[c.place] as owner, e.pair ->> 0 as other, jsonb_build_object('access_level', e.pair -> 1)
      || case when e.pair -> 2 = 'null' then '{}' else jsonb_build_object('config', e.pair -> 2) end as given
    from generate_subscripts(called, 1) c (place) cross join lateral jsonb_array_elements(tools[c.place]) with ordinality e (pair, number)
      left join public.skill_t s on s.host_id = tenant and s.name = called[c.place]
      left join public.tool_t t on t.host_id = tenant and t.name = e.pair ->> 0
      left join public.skill_tool_t k on k.host_id = tenant and k.skill_id = s.skill_id and k.tool_id = t.tool_id
    where coalesce(k.update_user, 'code') = 'code' order by c.place, e.number
  loop
    select l.outcome, l.absent into outcome, absent from holdfast.link_tool(
      tenant, link.owner, link.other, link.given, null, 'code') l;
    owner := link.owner;
    other := link.other;
    if outcome <> 'stored' then
      return;
    end if;
  end loop;
  for link in
    select called[c.place] as owner, e.pair ->> 0 as other, jsonb_build_object('required', e.pair -> 1) as given
    from generate_subscripts(called, 1) c (place) cross join lateral jsonb_array_elements(needs[c.place]) with ordinality e (pair, number)
      left join public.skill_t s on s.host_id = tenant and s.name = called[c.place]
      left join public.skill_t n on n.host_id = tenant and n.name = e.pair ->> 0
      left join public.skill_dependency_t d on d.host_id = tenant and d.skill_id = s.skill_id and d.depends_on_skill_id = n.skill_id
    where coalesce(d.update_user, 'code') = 'code' order by c.place, e.number
  loop
    select l.outcome, l.absent, l.names into outcome, absent, names from holdfast.link_need(
      tenant, link.owner, link.other, link.given, null, 'code') l;
    owner := link.owner;
    other := link.other;
    if outcome <> 'stored' then
      return;
    end if;
  end loop;
  for link in
    select agents[c.place] as owner, e.skill as other, jsonb_build_object('sequence_id', e.number) as given
    from generate_subscripts(agents, 1) c (place)
      cross join lateral jsonb_array_elements_text(assigned[c.place]) with ordinality e (skill, number)
      left join public.agent_definition_t a on a.host_id = tenant and a.name = agents[c.place]
      left join public.skill_t s on s.host_id = tenant and s.name = e.skill
      left join public.agent_skill_t g on g.host_id = tenant and g.agent_def_id = a.agent_def_id and g.skill_id = s.skill_id
    where coalesce(g.update_user, 'code') = 'code' order by c.place, e.number
  loop
    select l.outcome, l.absent into outcome, absent from holdfast.assign_skill(
      tenant, link.owner, link.other, link.given, null, 'code') l;
    owner := link.owner;
    other := link.other;
    if outcome <> 'stored' then
      return;
    end if;
  end loop;
  outcome := 'stored';
end $$;
revoke execute on function holdfast.declare_links from public;
grant execute on function holdfast.declare_links to holdfast_app;
