-- The sources of files that are watched, of all tenants.
select c.host_id, c.source_id, c.file from source_check c where c.file is not null and c.seconds is distinct from 0
