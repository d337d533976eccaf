-- Records a direct call of a tool, or finds the earlier call with the same key.
select * from holdfast.begin_execution($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
