-- The tools with these names, with everything that a call needs.
select told from holdfast.tool_entries where host_id = $1 and name = any($2)
