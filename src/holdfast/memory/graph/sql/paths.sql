-- Finds paths between two entities, given by their canonical keys.
select p.path, p.cut from holdfast.graph_paths($1, $2, $3, $4, $5, $6, $7, $8, $9) p
