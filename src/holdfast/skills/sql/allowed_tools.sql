-- The active tools with these names: their permissions, and everything that a call needs.
select name, permissions, told from holdfast.tool_entries where host_id = $1 and active and name = any($2)
