-- The tools of these names, with all that a call takes.
select told from holdfast.tool_entries where host_id = $1 and name = any($2)
