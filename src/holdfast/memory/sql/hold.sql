-- Holds memories, always in the same order, so that no two who hold some wait for one another.
select id from memory where tenant_id = $1 and id = any($2::uuid[]) order by id for update
