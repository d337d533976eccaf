-- Changes of the registry, newest first.
select * from registry_change
where host_id = $1 and (revision, number) < ($2, $3) and kind = any($5) order by revision desc, number desc limit $4
