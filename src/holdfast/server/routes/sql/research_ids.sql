-- The ids of research between two, in order.
select id from research where tenant_id = $1 and id between $2 and $3 order by id limit $4
