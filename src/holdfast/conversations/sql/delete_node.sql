-- Empties a node and all nodes below it.
select * from holdfast.delete_node($1, $2, $3)
