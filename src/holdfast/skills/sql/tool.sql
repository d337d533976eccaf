-- One tool, with the data for people.
select * from holdfast.tool_entries where host_id = $1 and name = $2
