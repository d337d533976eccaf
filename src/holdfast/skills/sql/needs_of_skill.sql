-- The dependencies of a skill. One row without a dependency if there are none; no row if the skill does not exist.
select s.name as skill, n.name as needed, d.required, d.active, d.aggregate_version, d.update_user, d.update_ts
from skill_t s
  left join (skill_dependency_t d join skill_t n on n.host_id = $1 and n.skill_id = d.depends_on_skill_id)
    on d.host_id = $1 and d.skill_id = s.skill_id
where s.host_id = $1 and s.name = $2 order by n.name
