-- Some secrets, sealed as they are, for a call that shows them.
select name, sealed, key_id, hosts from secret where host_id = $1 and name = any($2)
