-- Links a skill to a tool.
select * from holdfast.link_tool($1, $2, $3, $4, $5, $6)
