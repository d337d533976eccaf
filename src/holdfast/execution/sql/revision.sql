-- The current revision of the registry; 0 if it has none yet.
select coalesce((select r.revision from registry r where r.host_id = $1), 0)
