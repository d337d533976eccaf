-- Replaces the content of a node.
select * from holdfast.edit_node($1, $2, $3, $4, $5, $6)
