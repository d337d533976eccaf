-- Which of these chunks are still there.
select id from chunk where tenant_id = $1 and id = any($2)
