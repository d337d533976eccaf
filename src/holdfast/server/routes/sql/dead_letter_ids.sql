-- The ids of dead letters between two, in order.
select id from dead_letter where tenant_id = $1 and id between $2 and $3 order by id limit $4
