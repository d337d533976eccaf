-- The secrets of the tenant by name, without their encrypted values.
select name, hosts, key_id, aggregate_version, created_at, update_ts, update_user from secret where host_id = $1 order by name
