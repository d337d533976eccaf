-- Activates a tool or not, or says who may use it.
select * from holdfast.administer_tool($1, $2, $3, $4, $5)
