-- Whether a tool may be called now: whether it and its source are active, whether its definition waits for an approval (`held`), and what agents may
-- do with it. If a skill disclosed the tool to an agent, also whether that skill is still active, linked to the tool, and reachable from a skill that is
-- assigned to the agent.
with recursive above (skill_id) as (
  select s.skill_id from skill_t s where s.host_id = $1 and s.skill_id = $3 and s.active
  union
  select led.skill_id
  from above l cross join lateral (
    select c.parent_skill_id as skill_id from skill_t c where c.host_id = $1 and c.skill_id = l.skill_id
    union all
    select d.skill_id from skill_dependency_t d where d.host_id = $1 and d.depends_on_skill_id = l.skill_id and d.active
  ) led
  join skill_t s on s.host_id = $1 and s.skill_id = led.skill_id
  where s.active
)
select t.aggregate_version, t.active and o.active is not false as active, t.held, t.access, t.permissions, l.access_level,
  $3::uuid is null or l.active and exists (
    select from above g
    join agent_definition_t d on d.host_id = $1 and d.name = $4
    join agent_skill_t a on a.host_id = $1 and a.agent_def_id = d.agent_def_id and a.skill_id = g.skill_id
    where a.active
  ) as disclosed
from tool_t t
  left join tool_source o on o.host_id = $1 and o.source_id = t.source_id
  left join skill_tool_t l on l.host_id = $1 and l.skill_id = $3 and l.tool_id = t.tool_id
where t.host_id = $1 and t.tool_id = $2
