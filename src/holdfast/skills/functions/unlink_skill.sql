-- Removes a link. `kind` is as in the registry's history, `owner` is the skill or agent that has the link, `other` its target.
-- `outcome`: removed, missing, conflict (`version` is the current one).
create or replace function holdfast.unlink(
  tenant uuid, kind text, owner text, other text, expected bigint, person text, out outcome text, out version bigint
) language plpgsql as $$
#variable_conflict use_column
declare
  was jsonb;
begin
  perform holdfast.lock_registry(tenant);
  case kind
    when 'skill_tool' then
      select to_jsonb(k) || jsonb_build_object('skill', owner, 'tool', other) into was
      from public.skill_t s join public.skill_tool_t k on k.host_id = tenant and k.skill_id = s.skill_id
        join public.tool_t t on t.host_id = tenant and t.tool_id = k.tool_id
      where s.host_id = tenant and s.name = owner and t.name = other for update of k;
    when 'skill_dependency' then
      select to_jsonb(d) || jsonb_build_object('skill', owner, 'needs', other) into was
      from public.skill_t s join public.skill_dependency_t d on d.host_id = tenant and d.skill_id = s.skill_id
        join public.skill_t n on n.host_id = tenant and n.skill_id = d.depends_on_skill_id
      where s.host_id = tenant and s.name = owner and n.name = other for update of d;
    when 'agent_skill' then
      select to_jsonb(g) || jsonb_build_object('agent', owner, 'skill', other) into was
      from public.agent_definition_t a join public.agent_skill_t g on g.host_id = tenant and g.agent_def_id = a.agent_def_id
        join public.skill_t s on s.host_id = tenant and s.skill_id = g.skill_id
      where a.host_id = tenant and a.name = owner and s.name = other for update of g;
  end case;
  unlink.version := (was ->> 'aggregate_version')::bigint;
  outcome := case when was is null then 'missing' when unlink.version <> expected then 'conflict' else 'removed' end;
  if outcome <> 'removed' then
    return;
  end if;
  case kind
    when 'skill_tool' then
      delete from public.skill_tool_t k
      where k.host_id = tenant and k.skill_id = (was ->> 'skill_id')::uuid and k.tool_id = (was ->> 'tool_id')::uuid;
    when 'skill_dependency' then
      delete from public.skill_dependency_t d
      where d.host_id = tenant and d.skill_id = (was ->> 'skill_id')::uuid and d.depends_on_skill_id = (was ->> 'depends_on_skill_id')::uuid;
    when 'agent_skill' then
      delete from public.agent_skill_t g
      where g.host_id = tenant and g.agent_def_id = (was ->> 'agent_def_id')::uuid and g.skill_id = (was ->> 'skill_id')::uuid;
  end case;
  perform holdfast.note_changes(tenant, array[kind], array[owner], array[was], array[null::jsonb], person);
end $$;
revoke execute on function holdfast.unlink from public;
grant execute on function holdfast.unlink to holdfast_app;
