-- Returns entities by id, with what they are merged into.
select e.id, e.scope, e.owner, e.canonical, e.merged_into from entities e where e.tenant_id = $1 and e.id = any($2)
