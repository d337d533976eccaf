-- Removes processes that serve no agents any more.
delete from worker_presence where tenant_id = $1 and worker = any($2::uuid[])
