-- Empties a node and all below it.
select * from holdfast.delete_node($1, $2, $3)
