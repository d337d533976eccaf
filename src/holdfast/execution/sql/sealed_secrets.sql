-- Some secrets, still encrypted, for a call that needs them.
select name, sealed, key_id, hosts from secret where host_id = $1 and name = any($2)
