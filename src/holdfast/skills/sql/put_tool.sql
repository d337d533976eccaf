-- Creates or changes a tool.
select * from holdfast.put_tool($1, $2, $3, $4, $5)
