-- The ids of documents between two, in order.
select id from document where tenant_id = $1 and id between $2 and $3 order by id limit $4
