-- One tool, with what people are told of it.
select * from holdfast.tool_entries where host_id = $1 and name = $2
