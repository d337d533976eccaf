-- Changes a memory. If its version is not the expected one, changes nothing and returns only the current version.
select current_version, (stored).* from holdfast.change_memory($1, $2, $3, $4, $5, $6, $7)
