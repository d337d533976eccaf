-- How large the files beside a skill's instructions are; a row without one where there is none, no row where there is no such skill.
select f.path, octet_length(f.content) as size, f.executable
from skill_t s left join skill_file f on f.host_id = $1 and f.skill_id = s.skill_id
where s.host_id = $1 and s.name = $2 order by f.path
