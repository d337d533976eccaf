-- Returns a memory.
select * from memory where tenant_id = $1 and id = $2
