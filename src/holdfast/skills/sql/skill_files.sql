-- The files of a skill. One row without a file if there are none; no row if the skill does not exist.
select f.path, f.content, f.executable
from skill_t s left join skill_file f on f.host_id = $1 and f.skill_id = s.skill_id
where s.host_id = $1 and s.name = $2 order by f.path
