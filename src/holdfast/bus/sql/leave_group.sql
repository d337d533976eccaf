-- A member goes, and its partitions are free.
select holdfast.leave_group($1, $2, $3)
