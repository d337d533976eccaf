-- Moves a node within its tree.
select * from holdfast.move_node($1, $2, $3, $4, $5)
