-- The active tools of these names, with all that a call takes, and what agents may do with them.
select name, permissions, told from holdfast.tool_entries where host_id = $1 and active and name = any($2)
