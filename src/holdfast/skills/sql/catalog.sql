-- The catalogue of an agent: its assigned skills, in order, all skills to which these lead, with the tools of each, and the registry's revision. One
-- statement, so that catalogue and revision are from the same snapshot.
with recursive assigned as materialized (
  select a.skill_id, a.config, a.priority, a.sequence_id
  from agent_definition_t d join agent_skill_t a on a.host_id = d.host_id and a.agent_def_id = d.agent_def_id
  where d.host_id = $1 and d.name = $2 and a.host_id = $1 and a.active
), reached (skill_id) as (
  select a.skill_id from assigned a join skill_t s on s.host_id = $1 and s.skill_id = a.skill_id where s.active
  union
  select led.skill_id
  from reached r cross join lateral (
    select c.skill_id from skill_t c where c.host_id = $1 and c.parent_skill_id = r.skill_id
    union all
    select d.depends_on_skill_id from skill_dependency_t d where d.host_id = $1 and d.skill_id = r.skill_id and d.active
  ) led
  join skill_t s on s.host_id = $1 and s.skill_id = led.skill_id
  where s.active
)
select coalesce((select r.revision from registry r where r.host_id = $1), 0) as revision,
  (
    select coalesce(jsonb_agg(jsonb_build_object('skill_id', a.skill_id, 'config', a.config)
      order by a.priority desc, a.sequence_id, s.name), '[]')
    from assigned a join skill_t s on s.host_id = $1 and s.skill_id = a.skill_id
  ) as assigned,
  (
    select coalesce(jsonb_agg(jsonb_build_object(
      'id', s.skill_id, 'name', s.name, 'description', s.description, 'version', s.aggregate_version,
      'parts', (
        select coalesce(jsonb_agg(c.skill_id order by c.name), '[]') from skill_t c
        where c.host_id = $1 and c.parent_skill_id = s.skill_id
      ),
      'needs', (
        select coalesce(jsonb_agg(jsonb_build_array(d.depends_on_skill_id, d.required, n.name, n.active) order by n.name), '[]')
        from skill_dependency_t d join skill_t n on n.host_id = $1 and n.skill_id = d.depends_on_skill_id
        where d.host_id = $1 and d.skill_id = s.skill_id and d.active
      ),
      'tools', (
        select coalesce(jsonb_agg(jsonb_build_object(
          'id', t.tool_id, 'name', t.name, 'description', t.description, 'access', t.access, 'level', l.access_level,
          'permissions', t.permissions, 'config', l.config, 'version', t.aggregate_version, 'kind', t.implementation_type, 'mode', t.mode
        ) order by t.name), '[]')
        from skill_tool_t l join tool_t t on t.host_id = $1 and t.tool_id = l.tool_id
          left join tool_source o on o.host_id = $1 and o.source_id = t.source_id
        where l.host_id = $1 and l.skill_id = s.skill_id and l.active and t.active and not t.held and o.active is not false
      )
    ) order by s.name), '[]')
    from reached r join skill_t s on s.host_id = $1 and s.skill_id = r.skill_id
  ) as skills
