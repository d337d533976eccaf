-- Which change of the registry was the last one.
select coalesce((select r.revision from registry r where r.host_id = $1), 0)
