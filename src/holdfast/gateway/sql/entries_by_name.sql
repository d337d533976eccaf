-- The active ones of these tools, with everything that the gateway needs.
select e.* from holdfast.tool_entries e where e.host_id = $1 and e.name = any($2) and e.active
