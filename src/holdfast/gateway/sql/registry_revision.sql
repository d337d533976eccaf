-- The current revision of the registry.
select coalesce((select r.revision from registry r where r.host_id = $1), 0)
