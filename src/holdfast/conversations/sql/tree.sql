-- All nodes of a tree, read by its root. Siblings are ordered by place.
select id, parent, seq, place from node where tenant_id = $1 and root = $2 and not deleted limit $3
