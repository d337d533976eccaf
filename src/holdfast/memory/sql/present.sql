-- Which of these memories are there, and whether they are this owner's.
select id, scope = $2 and owner = $3 as own from memory where tenant_id = $1 and id = any($4::uuid[])
