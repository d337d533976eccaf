-- Returns the newest entities of an owner that are not merged into another, to look for duplicates among them.
select e.id, e.key, e.name, e.type from entities e
where e.tenant_id = $1 and e.scope = $2 and e.owner = $3 and e.merged_into is null
order by e.id desc limit $4
