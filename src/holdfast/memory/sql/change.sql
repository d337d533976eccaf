-- Changes a memory; nothing of it where someone else changed it first.
select current_version, (stored).* from holdfast.change_memory($1, $2, $3, $4, $5, $6, $7)
