-- Removes a member from its group, and releases its partitions.
select holdfast.leave_group($1, $2, $3)
