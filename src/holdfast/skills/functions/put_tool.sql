-- Creates a tool that belongs to no app and no source, or changes one with the expected version.
-- `outcome`: stored; missing; conflict (`version` is the current one); code or source (only the app or source can change it; `source` is the source's
-- name); service (another tool has the method; `source` is its name).
create or replace function holdfast.put_tool(
  tenant uuid, called text, given jsonb, expected bigint, person text, out outcome text, out version bigint, out source text
) language plpgsql as $$
#variable_conflict use_column
declare
  was public.tool_t;
begin
  perform holdfast.lock_registry(tenant);
  select t.* into was from public.tool_t t where t.host_id = tenant and t.name = called for update;
  select o.name into source from public.tool_source o where o.host_id = tenant and o.source_id = was.source_id;
  put_tool.version := was.aggregate_version;
  outcome := case
    when was.tool_id is null and expected is not null then 'missing'
    when was.origin <> 'db' then was.origin
    when was.aggregate_version is distinct from expected then 'conflict'
    else 'stored' end;
  if outcome = 'stored' then
    select 'service', t.name into outcome, source from public.tool_t t
    where t.host_id = tenant and t.service = given ->> 'service' and t.name <> called;
    outcome := coalesce(outcome, 'stored');
  end if;
  if outcome = 'stored' then
    select w.version into put_tool.version
    from holdfast.write_tools(tenant, array[coalesce(was.tool_id, holdfast.uuid7())], array[given], person) w;
  end if;
end $$;
revoke execute on function holdfast.put_tool from public;
grant execute on function holdfast.put_tool to holdfast_app;

-- Changes what administrators control in a tool of any origin: whether it is active, and its permissions.
-- `outcome`: stored, missing, conflict.
create or replace function holdfast.administer_tool(
  tenant uuid, called text, given jsonb, expected bigint, person text, out outcome text, out version bigint
) language plpgsql as $$
#variable_conflict use_column
declare
  was public.tool_t;
begin
  perform holdfast.lock_registry(tenant);
  select t.* into was from public.tool_t t where t.host_id = tenant and t.name = called for update;
  administer_tool.version := was.aggregate_version;
  outcome := case when was.tool_id is null then 'missing' when was.aggregate_version <> expected then 'conflict' else 'stored' end;
  if outcome = 'stored' then
    select w.version into administer_tool.version from holdfast.write_tools(tenant, array[was.tool_id], array[given], person) w;
  end if;
end $$;
revoke execute on function holdfast.administer_tool from public;
grant execute on function holdfast.administer_tool to holdfast_app;

-- Deletes tools and the links of skills to them. They must exist, and the caller must hold the registry's lock.
create or replace function holdfast.delete_tools(tenant uuid, ids uuid[], person text) returns void language plpgsql as $$
#variable_conflict use_column
begin
  perform holdfast.note_changes(tenant, array_agg(c.kind), array_agg(c.name), array_agg(c.before), array_agg(null::jsonb), person)
  from (
    select 'tool' as kind, t.name::text as name, holdfast.tool_told(t) as before
    from public.tool_t t where t.host_id = tenant and t.tool_id = any(ids)
    union all
    select 'skill_tool', s.name, to_jsonb(k) || jsonb_build_object('skill', s.name, 'tool', t.name)
    from public.skill_tool_t k join public.skill_t s on s.host_id = tenant and s.skill_id = k.skill_id
      join public.tool_t t on t.host_id = tenant and t.tool_id = k.tool_id
    where k.host_id = tenant and k.tool_id = any(ids)
  ) c;
  perform holdfast.unindex(tenant, 'tool', ids);
  delete from public.tool_t t where t.host_id = tenant and t.tool_id = any(ids);
end $$;
revoke execute on function holdfast.delete_tools from public;
grant execute on function holdfast.delete_tools to holdfast_app;

-- Removes a tool that belongs to no app and no source. `outcome`: removed, missing, conflict, code, source (`source` is the source's name).
-- An inactive tool of an app can be removed, like a skill (holdfast.remove_skill); a tool of a source, if the source no longer has it.
create or replace function holdfast.remove_tool(
  tenant uuid, called text, expected bigint, person text, out outcome text, out version bigint, out source text
) language plpgsql as $$
#variable_conflict use_column
declare
  was public.tool_t;
begin
  perform holdfast.lock_registry(tenant);
  select t.* into was from public.tool_t t where t.host_id = tenant and t.name = called for update;
  select o.name into source from public.tool_source o where o.host_id = tenant and o.source_id = was.source_id;
  remove_tool.version := was.aggregate_version;
  outcome := case
    when was.tool_id is null then 'missing'
    when was.origin = 'code' and was.active or was.origin = 'source' and not was.gone then was.origin
    when was.aggregate_version <> expected then 'conflict'
    else 'removed' end;
  if outcome = 'removed' then
    perform holdfast.delete_tools(tenant, array[was.tool_id], person);
  end if;
end $$;
revoke execute on function holdfast.remove_tool from public;
grant execute on function holdfast.remove_tool to holdfast_app;
