-- Links of skills: to tools, to the skills that they need, and from agents. Each function creates or changes a link. `outcome`: stored; missing
-- (`absent` is what does not exist); conflict (`version` is the current one, null if there is no link). `expected` null: any version. `given` has the
-- given columns; the others are unchanged. An unchanged link is not written again.

-- Links a skill to a tool. An `access_level` of null is the access that the tool needs.
create or replace function holdfast.link_tool(
  tenant uuid, of_skill text, to_tool text, given jsonb, expected bigint, person text,
  out outcome text, out version bigint, out absent text
) language plpgsql as $$
#variable_conflict use_column
declare
  ends constant jsonb := jsonb_build_object('skill', of_skill, 'tool', to_tool);
  skill uuid;
  tool public.tool_t;
  was public.skill_tool_t;
  item public.skill_tool_t;
  before jsonb;
begin
  perform holdfast.lock_registry(tenant);
  select s.skill_id into skill from public.skill_t s where s.host_id = tenant and s.name = of_skill for key share;
  select t.* into tool from public.tool_t t where t.host_id = tenant and t.name = to_tool for key share;
  select k.* into was from public.skill_tool_t k where k.host_id = tenant and k.skill_id = skill and k.tool_id = tool.tool_id for update;
  if found then
    before := to_jsonb(was) || ends;
  end if;
  link_tool.version := was.aggregate_version;
  absent := case when skill is null then 'skill' when tool.tool_id is null then 'tool' end;
  outcome := case when absent is not null then 'missing' when expected <> coalesce(was.aggregate_version, 0) then 'conflict' else 'stored' end;
  item := jsonb_populate_record(was, case when before is null then '{"config": {}, "active": true}'::jsonb else '{}' end || given);
  item.access_level := coalesce(item.access_level, tool.access);
  if outcome <> 'stored' or (was.access_level, was.config, was.active) = (item.access_level, item.config, item.active) then
    return;
  end if;
  insert into public.skill_tool_t (host_id, skill_id, tool_id, config, access_level, active, update_user)
  values (tenant, skill, tool.tool_id, item.config, item.access_level, item.active, person)
  on conflict (host_id, skill_id, tool_id) do update set
    config = excluded.config, access_level = excluded.access_level, active = excluded.active, update_user = person,
    update_ts = holdfast.now(), aggregate_version = skill_tool_t.aggregate_version + 1
  returning * into item;
  link_tool.version := item.aggregate_version;
  perform holdfast.note_changes(tenant, array['skill_tool'], array[of_skill], array[before], array[to_jsonb(item) || ends], person);
end $$;
revoke execute on function holdfast.link_tool from public;
grant execute on function holdfast.link_tool to holdfast_app;

-- Makes a skill depend on another one. One more `outcome`: circle, if the other one already depends on this one (`names` is the path from the other
-- one to this one). Inactive and optional dependencies count, because they can become active and required.
create or replace function holdfast.link_need(
  tenant uuid, of_skill text, to_skill text, given jsonb, expected bigint, person text,
  out outcome text, out version bigint, out absent text, out names text[]
) language plpgsql as $$
#variable_conflict use_column
declare
  ends constant jsonb := jsonb_build_object('skill', of_skill, 'needs', to_skill);
  skill uuid;
  needed uuid;
  was public.skill_dependency_t;
  item public.skill_dependency_t;
  before jsonb;
begin
  perform holdfast.lock_registry(tenant);
  select s.skill_id into skill from public.skill_t s where s.host_id = tenant and s.name = of_skill for key share;
  select s.skill_id into needed from public.skill_t s where s.host_id = tenant and s.name = to_skill for key share;
  select d.* into was from public.skill_dependency_t d
    where d.host_id = tenant and d.skill_id = skill and d.depends_on_skill_id = needed for update;
  if found then
    before := to_jsonb(was) || ends;
  else
    names := holdfast.way_between(tenant, 'needs', needed, skill);
  end if;
  link_need.version := was.aggregate_version;
  absent := case when skill is null then 'skill' when needed is null then 'needed' end;
  outcome := case
    when absent is not null then 'missing'
    when expected <> coalesce(was.aggregate_version, 0) then 'conflict'
    when names is not null then 'circle'
    else 'stored' end;
  item := jsonb_populate_record(was, case when before is null then '{"required": true, "active": true}'::jsonb else '{}' end || given);
  if outcome <> 'stored' or (was.required, was.active) = (item.required, item.active) then
    return;
  end if;
  insert into public.skill_dependency_t (host_id, skill_id, depends_on_skill_id, required, active, update_user)
  values (tenant, skill, needed, item.required, item.active, person)
  on conflict (host_id, skill_id, depends_on_skill_id) do update set
    required = excluded.required, active = excluded.active, update_user = person, update_ts = holdfast.now(),
    aggregate_version = skill_dependency_t.aggregate_version + 1
  returning * into item;
  link_need.version := item.aggregate_version;
  perform holdfast.note_changes(tenant, array['skill_dependency'], array[of_skill], array[before], array[to_jsonb(item) || ends], person);
end $$;
revoke execute on function holdfast.link_need from public;
grant execute on function holdfast.link_need to holdfast_app;

create or replace function holdfast.assign_skill(
  tenant uuid, to_agent text, of_skill text, given jsonb, expected bigint, person text,
  out outcome text, out version bigint, out absent text
) language plpgsql as $$
#variable_conflict use_column
declare
  ends constant jsonb := jsonb_build_object('agent', to_agent, 'skill', of_skill);
  agent uuid;
  skill uuid;
  was public.agent_skill_t;
  item public.agent_skill_t;
  before jsonb;
begin
  perform holdfast.lock_registry(tenant);
  select a.agent_def_id into agent from public.agent_definition_t a where a.host_id = tenant and a.name = to_agent for key share;
  select s.skill_id into skill from public.skill_t s where s.host_id = tenant and s.name = of_skill for key share;
  select g.* into was from public.agent_skill_t g where g.host_id = tenant and g.agent_def_id = agent and g.skill_id = skill for update;
  if found then
    before := to_jsonb(was) || ends;
  end if;
  assign_skill.version := was.aggregate_version;
  absent := case when agent is null then 'agent' when skill is null then 'skill' end;
  outcome := case when absent is not null then 'missing' when expected <> coalesce(was.aggregate_version, 0) then 'conflict' else 'stored' end;
  item := jsonb_populate_record(
    was, case when before is null then '{"config": {}, "priority": 0, "sequence_id": 0, "active": true}'::jsonb else '{}' end || given);
  if outcome <> 'stored'
    or (was.config, was.priority, was.sequence_id, was.active) = (item.config, item.priority, item.sequence_id, item.active) then
    return;
  end if;
  insert into public.agent_skill_t (host_id, agent_def_id, skill_id, config, priority, sequence_id, active, update_user)
  values (tenant, agent, skill, item.config, item.priority, item.sequence_id, item.active, person)
  on conflict (host_id, agent_def_id, skill_id) do update set
    config = excluded.config, priority = excluded.priority, sequence_id = excluded.sequence_id, active = excluded.active,
    update_user = person, update_ts = holdfast.now(), aggregate_version = agent_skill_t.aggregate_version + 1
  returning * into item;
  assign_skill.version := item.aggregate_version;
  perform holdfast.note_changes(tenant, array['agent_skill'], array[to_agent], array[before], array[to_jsonb(item) || ends], person);
end $$;
revoke execute on function holdfast.assign_skill from public;
grant execute on function holdfast.assign_skill to holdfast_app;
