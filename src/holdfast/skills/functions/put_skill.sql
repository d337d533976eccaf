-- Creates a skill that no app declares, or changes one with the expected version. `given` has the given columns; the others are unchanged. Its
-- `parent` is the name of the parent skill.
-- `outcome`: stored; missing; conflict (`version` is the current one); code (an app declares it, and only the app can change it); parent (it does not
-- exist); circle (`names`: the parent, its parent, and so on up to the skill itself).
create or replace function holdfast.put_skill(
  tenant uuid, called text, given jsonb, paths text[], contents bytea[], executables boolean[], expected bigint, person text,
  out outcome text, out version bigint, out names text[]
) language plpgsql as $$
#variable_conflict use_column
declare
  below constant text := given ->> 'parent';
  was public.skill_t;
  parent uuid;
begin
  perform holdfast.lock_registry(tenant);
  select s.* into was from public.skill_t s where s.host_id = tenant and s.name = called for update;
  select s.skill_id into parent from public.skill_t s where s.host_id = tenant and s.name = below;
  put_skill.version := was.aggregate_version;
  names := case when below = called then array[called] else holdfast.way_between(tenant, 'parent', parent, was.skill_id) end;
  outcome := case
    when was.skill_id is null and expected is not null then 'missing'
    when was.origin = 'code' then 'code'
    when was.aggregate_version is distinct from expected then 'conflict'
    when names is not null then 'circle'
    when below is not null and parent is null then 'parent'
    else 'stored' end;
  if outcome = 'stored' then
    put_skill.version := holdfast.write_skill(
      tenant, called, given || case when given ? 'parent' then jsonb_build_object('parent_skill_id', parent) else '{}' end,
      paths, contents, executables, person);
  end if;
end $$;
revoke execute on function holdfast.put_skill from public;
grant execute on function holdfast.put_skill to holdfast_app;

-- Activates or deactivates a skill of any origin, for administrators. `outcome`: stored, missing, conflict.
create or replace function holdfast.activate_skill(
  tenant uuid, called text, is_active boolean, expected bigint, person text, out outcome text, out version bigint
) language plpgsql as $$
#variable_conflict use_column
begin
  perform holdfast.lock_registry(tenant);
  select s.aggregate_version into activate_skill.version from public.skill_t s where s.host_id = tenant and s.name = called for update;
  outcome := case when not found then 'missing' when activate_skill.version <> expected then 'conflict' else 'stored' end;
  if outcome = 'stored' then
    activate_skill.version := holdfast.write_skill(
      tenant, called, jsonb_build_object('active', is_active), null, null, null, person);
  end if;
end $$;
revoke execute on function holdfast.activate_skill from public;
grant execute on function holdfast.activate_skill to holdfast_app;

-- Removes a skill, with its files, its links to tools, its dependencies and its assignments to agents. `outcome`: removed; missing; conflict; code
-- (an app declares it; an inactive one can be removed, because no app may have it any more, and an app that has it declares it again); needed
-- (`parts` are its parts, `dependents` depend on it).
create or replace function holdfast.remove_skill(
  tenant uuid, called text, expected bigint, person text,
  out outcome text, out version bigint, out parts text[], out dependents text[]
) language plpgsql as $$
#variable_conflict use_column
declare
  was public.skill_t;
  kinds text[];
  names text[];
  befores jsonb[];
  scripts uuid[];
begin
  perform holdfast.lock_registry(tenant);
  select s.* into was from public.skill_t s where s.host_id = tenant and s.name = called for update;
  remove_skill.version := was.aggregate_version;
  parts := array(
    select s.name from public.skill_t s where s.host_id = tenant and s.parent_skill_id = was.skill_id and s.skill_id <> was.skill_id
    order by s.name);
  dependents := array(
    select s.name from public.skill_dependency_t d join public.skill_t s on s.host_id = tenant and s.skill_id = d.skill_id
    where d.host_id = tenant and d.depends_on_skill_id = was.skill_id order by s.name);
  outcome := case
    when was.skill_id is null then 'missing'
    when was.origin = 'code' and was.active then 'code'
    when was.aggregate_version <> expected then 'conflict'
    when parts || dependents <> '{}' then 'needed'
    else 'removed' end;
  if outcome <> 'removed' then
    return;
  end if;
  scripts := array(
    select t.tool_id from public.tool_t t
    where t.host_id = tenant and t.implementation_type in ('python', 'javascript', 'bash')
      and substr(t.implementation_class, strpos(t.implementation_class, ':') + 1) = called);
  if scripts <> '{}' then  -- tools that are files of the skill
    perform holdfast.delete_tools(tenant, scripts, person);
  end if;
  select array_agg(l.kind), array_agg(l.name), array_agg(l.told) into kinds, names, befores from (
    select 'skill_tool' as kind, called as name, to_jsonb(k) || jsonb_build_object('skill', called, 'tool', t.name) as told
    from public.skill_tool_t k join public.tool_t t on t.host_id = tenant and t.tool_id = k.tool_id
    where k.host_id = tenant and k.skill_id = was.skill_id
    union all
    select 'skill_dependency', called, to_jsonb(d) || jsonb_build_object('skill', called, 'needs', s.name)
    from public.skill_dependency_t d join public.skill_t s on s.host_id = tenant and s.skill_id = d.depends_on_skill_id
    where d.host_id = tenant and d.skill_id = was.skill_id
    union all
    select 'agent_skill', a.name, to_jsonb(g) || jsonb_build_object('agent', a.name, 'skill', called)
    from public.agent_skill_t g join public.agent_definition_t a on a.host_id = tenant and a.agent_def_id = g.agent_def_id
    where g.host_id = tenant and g.skill_id = was.skill_id
  ) l;
  kinds := array['skill'] || kinds;
  perform holdfast.note_changes(
    tenant, kinds, array[called] || names, array[holdfast.skill_told(was)] || befores, array_fill(null::jsonb, array[cardinality(kinds)]), person);
  perform holdfast.unindex(tenant, 'skill', array[was.skill_id]);
  delete from public.skill_dependency_t d where d.host_id = tenant and d.skill_id = was.skill_id;
  delete from public.skill_t s where s.host_id = tenant and s.skill_id = was.skill_id;
end $$;
revoke execute on function holdfast.remove_skill from public;
grant execute on function holdfast.remove_skill to holdfast_app;
