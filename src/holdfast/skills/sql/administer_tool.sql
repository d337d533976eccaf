-- Activates or deactivates a tool, or sets its permissions.
select * from holdfast.administer_tool($1, $2, $3, $4, $5)
