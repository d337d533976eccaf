-- Which of these memories are still there, and in which version.
select id, version from memory where tenant_id = $1 and id = any($2::uuid[])
