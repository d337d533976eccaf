-- The tools of a skill. One row without a tool if there are none; no row if the skill does not exist.
select s.name as skill, t.name as tool, k.access_level, k.config, k.active, k.aggregate_version, k.update_user, k.update_ts
from skill_t s
  left join (skill_tool_t k join tool_t t on t.host_id = $1 and t.tool_id = k.tool_id) on k.host_id = $1 and k.skill_id = s.skill_id
where s.host_id = $1 and s.name = $2 order by t.name
