-- Returns those of the given ids that exist, and whether each belongs to this owner.
select id, scope = $2 and owner = $3 as own from memory where tenant_id = $1 and id = any($4::uuid[])
