-- Agents are part of the registry's history, so every change of an agent locks the registry first. An unchanged agent is not written again.

-- Writes an agent, and its change to the history. `was` is the former agent, or null for a new one. Returns the version.
create or replace function holdfast.write_agent(was public.agent_definition_t, item public.agent_definition_t, person text)
returns bigint language plpgsql as $$
#variable_conflict use_column
declare
  aside constant text[] := '{agent_def_id,aggregate_version,update_ts,update_user}';
begin
  if to_jsonb(was) - aside = to_jsonb(item) - aside then
    return was.aggregate_version;
  end if;
  insert into public.agent_definition_t (
    host_id, agent_def_id, name, kind, description, instructions, model, settings, origin, active, update_user)
  values (
    item.host_id, item.agent_def_id, item.name, item.kind, item.description, item.instructions, item.model, item.settings, item.origin,
    item.active, person)
  on conflict (host_id, name) do update set
    kind = excluded.kind, description = excluded.description, instructions = excluded.instructions, model = excluded.model,
    settings = excluded.settings, origin = excluded.origin, active = excluded.active, update_user = person, update_ts = holdfast.now(),
    aggregate_version = agent_definition_t.aggregate_version + 1
  returning * into item;
  perform holdfast.note_changes(
    item.host_id, array['agent'], array[item.name::text], array[case when was.name is not null then to_jsonb(was) end],
    array[to_jsonb(item)], person);
  return item.aggregate_version;
end $$;
revoke execute on function holdfast.write_agent from public;
grant execute on function holdfast.write_agent to holdfast_app;

-- Creates an agent that no app declares, or changes one that has the expected version.
-- `outcome`: stored; conflict (`version` is the current one); code (an app declares it, and only the app can change it).
create or replace function holdfast.put_agent(
  tenant uuid, agent uuid, called text, about text, instructions text, model text, settings jsonb, active boolean,
  expected bigint, person text, out outcome text, out version bigint
) language plpgsql as $$
#variable_conflict use_column
declare
  was public.agent_definition_t;
begin
  perform holdfast.lock_registry(tenant);
  select a.* into was from public.agent_definition_t a where a.host_id = tenant and a.name = called for update;
  put_agent.version := was.aggregate_version;
  outcome := case when was.origin = 'code' then 'code' when was.aggregate_version is distinct from expected then 'conflict' else 'stored' end;
  if outcome = 'stored' then
    put_agent.version := holdfast.write_agent(was, jsonb_populate_record(was, jsonb_build_object(
      'host_id', tenant, 'agent_def_id', coalesce(was.agent_def_id, agent), 'name', called, 'kind', 'llm', 'description', about,
      'instructions', put_agent.instructions, 'model', put_agent.model, 'settings', put_agent.settings, 'origin', 'db',
      'active', put_agent.active)), person);
  end if;
end $$;
revoke execute on function holdfast.put_agent from public;
grant execute on function holdfast.put_agent to holdfast_app;

-- Stores an agent of an app. A row with its name becomes the app's. Returns the version.
create or replace function holdfast.declare_agent(
  tenant uuid, agent uuid, called text, of_kind text, about text, instructions text, model text, settings jsonb
) returns bigint language plpgsql as $$
#variable_conflict use_column
declare
  was public.agent_definition_t;
begin
  perform holdfast.lock_registry(tenant);
  select a.* into was from public.agent_definition_t a where a.host_id = tenant and a.name = called for update;
  return holdfast.write_agent(was, jsonb_populate_record(was, jsonb_build_object(
    'host_id', tenant, 'agent_def_id', coalesce(was.agent_def_id, agent), 'name', called, 'kind', of_kind, 'description', about,
    'instructions', declare_agent.instructions, 'model', declare_agent.model, 'settings', declare_agent.settings, 'origin', 'code',
    'active', true)), 'code');
end $$;
revoke execute on function holdfast.declare_agent from public;
grant execute on function holdfast.declare_agent to holdfast_app;

-- Removes an agent that no app declares, and its assignments of skills. `outcome`: removed, missing, code.
create or replace function holdfast.remove_agent(tenant uuid, called text, person text, out outcome text) language plpgsql as $$
#variable_conflict use_column
declare
  was public.agent_definition_t;
begin
  perform holdfast.lock_registry(tenant);
  select a.* into was from public.agent_definition_t a where a.host_id = tenant and a.name = called for update;
  outcome := case when was.name is null then 'missing' when was.origin = 'code' then 'code' else 'removed' end;
  if outcome = 'removed' then
    perform holdfast.note_changes(tenant, array_agg(c.kind), array_agg(called), array_agg(c.before), array_agg(null::jsonb), person)
    from (
      select 'agent' as kind, to_jsonb(was) as before
      union all
      select 'agent_skill', to_jsonb(g) || jsonb_build_object('agent', called, 'skill', s.name)
      from public.agent_skill_t g join public.skill_t s on s.host_id = tenant and s.skill_id = g.skill_id
      where g.host_id = tenant and g.agent_def_id = was.agent_def_id
    ) c;
    delete from public.agent_definition_t a where a.host_id = tenant and a.name = called;
  end if;
end $$;
revoke execute on function holdfast.remove_agent from public;
grant execute on function holdfast.remove_agent to holdfast_app;
