-- Skills by name, after a given name; optionally only active or only inactive ones.
select s.*, p.name as parent
from skill_t s left join skill_t p on p.host_id = $1 and p.skill_id = s.parent_skill_id
where s.host_id = $1 and s.name > $2 and ($4::boolean is null or s.active = $4)
order by s.name limit $3
