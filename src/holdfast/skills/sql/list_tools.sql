-- Tools by name, after a given name; optionally only those of a source, a kind or a skill, or only active or inactive ones.
select e.* from holdfast.tool_entries e
where e.host_id = $1 and e.name > $2 and ($4::text is null or e.source = $4) and ($5::text is null or e.implementation_type = $5)
  and ($6::boolean is null or e.active = $6) and ($7::text is null or e.tool_id in (
    select k.tool_id from skill_t s join skill_tool_t k on k.host_id = $1 and k.skill_id = s.skill_id
    where s.host_id = $1 and s.name = $7))
order by e.name limit $3
