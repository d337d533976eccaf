-- Those of these tools that are used, with all that a gateway has to know of them.
select e.* from holdfast.tool_entries e where e.host_id = $1 and e.name = any($2) and e.active
