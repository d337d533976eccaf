-- Returns the oldest document of an owner; no row if the owner has none.
select d.id from document d where d.tenant_id = $1 and d.scope = $2 and d.owner = $3 order by d.id limit 1
