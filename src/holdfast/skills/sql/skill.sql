-- One skill, and the name of its parent.
select s.*, p.name as parent
from skill_t s left join skill_t p on p.host_id = $1 and p.skill_id = s.parent_skill_id
where s.host_id = $1 and s.name = $2
