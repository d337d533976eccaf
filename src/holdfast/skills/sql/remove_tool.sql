-- Removes a tool.
select * from holdfast.remove_tool($1, $2, $3, $4)
