-- A tool as it is now, with all that a call takes.
select told from holdfast.tool_entries where host_id = $1 and tool_id = $2
