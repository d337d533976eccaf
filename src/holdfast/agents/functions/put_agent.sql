-- Stores an agent that no program declares, or changes one of the expected version.
-- `outcome`: stored; conflict (`version` is the current one); code (a program's, and its alone to change).
create or replace function holdfast.put_agent(
  tenant uuid, agent uuid, called text, about text, instructions text, model text, settings jsonb, active boolean,
  expected bigint, person text, out outcome text, out version bigint
) language plpgsql as $$
#variable_conflict use_column
declare
  origin text;
begin
  insert into public.agent_definition_t (
      host_id, agent_def_id, name, kind, description, instructions, model, settings, active, update_user)
    select tenant, agent, called, 'llm', about, put_agent.instructions, put_agent.model, put_agent.settings, put_agent.active, person
    where expected is null
    on conflict (host_id, name) do nothing;
  if found then
    outcome := 'stored';
    put_agent.version := 1;
    return;
  end if;
  select a.origin, a.aggregate_version from public.agent_definition_t a where a.host_id = tenant and a.name = called for update
    into origin, put_agent.version;
  outcome := case when origin = 'code' then 'code' when put_agent.version is distinct from expected then 'conflict' else 'stored' end;
  if outcome = 'stored' then
    update public.agent_definition_t a
      set description = about, instructions = put_agent.instructions, model = put_agent.model, settings = put_agent.settings,
        active = put_agent.active, aggregate_version = a.aggregate_version + 1, update_user = person, update_ts = holdfast.now()
      where a.host_id = tenant and a.name = called returning a.aggregate_version into put_agent.version;
  end if;
end $$;
revoke execute on function holdfast.put_agent from public;
grant execute on function holdfast.put_agent to holdfast_app;

-- Removes an agent that no program declares. `outcome`: removed, missing, code.
create or replace function holdfast.remove_agent(tenant uuid, called text, out outcome text) language plpgsql as $$
#variable_conflict use_column
declare
  origin text;
begin
  select a.origin from public.agent_definition_t a where a.host_id = tenant and a.name = called for update into origin;
  outcome := case when not found then 'missing' when origin = 'code' then 'code' else 'removed' end;
  if outcome = 'removed' then
    delete from public.agent_definition_t a where a.host_id = tenant and a.name = called;
  end if;
end $$;
revoke execute on function holdfast.remove_agent from public;
grant execute on function holdfast.remove_agent to holdfast_app;
