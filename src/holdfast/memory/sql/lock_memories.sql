-- Locks memories in the order of their ids, to avoid deadlocks.
select id from memory where tenant_id = $1 and id = any($2::uuid[]) order by id for update
