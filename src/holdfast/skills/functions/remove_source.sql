-- Removes a source and its tools. `outcome`: removed (`tools`: the removed ones); missing; conflict (`version` is the current one); linked (`tools`:
-- those that skills have, as `tool (skill, …)`), unless it is forced.
create or replace function holdfast.remove_source(
  tenant uuid, called text, is_forced boolean, expected bigint, person text,
  out outcome text, out version bigint, out tools text[]
) language plpgsql as $$
#variable_conflict use_column
declare
  was public.tool_source;
  ids uuid[];
begin
  perform holdfast.lock_registry(tenant);
  select o.* into was from public.tool_source o where o.host_id = tenant and o.name = called for update;
  remove_source.version := was.aggregate_version;
  tools := array(
    select format('%s (%s)', t.name, string_agg(s.name, ', ' order by s.name))
    from public.tool_t t
      join public.skill_tool_t k on k.host_id = tenant and k.tool_id = t.tool_id
      join public.skill_t s on s.host_id = tenant and s.skill_id = k.skill_id
    where t.host_id = tenant and t.source_id = was.source_id
    group by t.name order by t.name);
  outcome := case
    when was.source_id is null then 'missing'
    when was.aggregate_version <> expected then 'conflict'
    when tools <> '{}' and not is_forced then 'linked'
    else 'removed' end;
  if outcome <> 'removed' then
    return;
  end if;
  select coalesce(array_agg(t.tool_id), '{}'), coalesce(array_agg(t.name::text order by t.name), '{}') into ids, tools
  from public.tool_t t where t.host_id = tenant and t.source_id = was.source_id;
  if ids <> '{}' then
    perform holdfast.delete_tools(tenant, ids, person);
  end if;
  perform holdfast.note_changes(tenant, array['source'], array[called], array[to_jsonb(was) - '{report,offers}'::text[]], array[null::jsonb], person);
  delete from public.tool_source o where o.host_id = tenant and o.source_id = was.source_id;
end $$;
revoke execute on function holdfast.remove_source from public;
grant execute on function holdfast.remove_source to holdfast_app;
