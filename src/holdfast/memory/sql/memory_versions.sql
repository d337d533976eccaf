-- Returns those of the given memories that still exist, with their versions.
select id, version from memory where tenant_id = $1 and id = any($2::uuid[])
