-- Creates a secret or replaces its value.
select name, hosts, key_id, aggregate_version, created_at, update_ts, update_user from holdfast.set_secret($1, $2, $3, $4, $5, $6)
