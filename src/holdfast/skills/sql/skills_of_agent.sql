-- The skills of an agent, in the order of its prompt. One row without a skill if there are none; no row if the agent does not exist.
select a.name as agent, s.name as skill, g.config, g.priority, g.sequence_id, g.active, g.aggregate_version, g.update_user, g.update_ts
from agent_definition_t a
  left join (agent_skill_t g join skill_t s on s.host_id = $1 and s.skill_id = g.skill_id)
    on g.host_id = $1 and g.agent_def_id = a.agent_def_id
where a.host_id = $1 and a.name = $2 order by g.priority desc, g.sequence_id, s.name
