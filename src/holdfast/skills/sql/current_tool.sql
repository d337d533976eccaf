-- The current state of a tool, with everything that a call needs.
select told from holdfast.tool_entries where host_id = $1 and tool_id = $2
