-- A file of a skill.
select f.content, f.executable from skill_t s join skill_file f on f.host_id = $1 and f.skill_id = s.skill_id
where s.host_id = $1 and s.name = $2 and f.path = $3
