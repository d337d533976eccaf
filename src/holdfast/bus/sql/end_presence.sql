-- A worker is there no longer.
delete from worker_presence where tenant_id = $1 and worker = $2
