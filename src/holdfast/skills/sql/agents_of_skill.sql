-- The agents that have a skill. One row without an agent if there are none; no row if the skill does not exist.
select a.name as agent, s.name as skill, g.config, g.priority, g.sequence_id, g.active, g.aggregate_version, g.update_user, g.update_ts
from skill_t s
  left join (agent_skill_t g join agent_definition_t a on a.host_id = $1 and a.agent_def_id = g.agent_def_id)
    on g.host_id = $1 and g.skill_id = s.skill_id
where s.host_id = $1 and s.name = $2 order by a.name
