-- Deletes the announcement of a worker that stops.
delete from worker_presence where tenant_id = $1 and worker = $2
