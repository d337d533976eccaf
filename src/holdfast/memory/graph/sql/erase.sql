-- Deletes all entities of an owner, with their links, relationships and merges. Returns how many.
with gone as (delete from entities e where e.tenant_id = $1 and e.scope = $2 and e.owner = $3 returning 1) select count(*) from gone
