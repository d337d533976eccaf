-- Links a skill to a tool that it works with.
select * from holdfast.link_tool($1, $2, $3, $4, $5, $6)
