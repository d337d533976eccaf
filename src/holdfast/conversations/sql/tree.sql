-- A whole tree, as the log has it; the order of siblings comes from their places.
select id, parent, seq, place from node where tenant_id = $1 and root = $2 and not deleted limit $3
