-- Creates daily partitions of the records for the coming days, and drops old ones that nobody needs.
select made, dropped, skipped from holdfast.tend_log($1, $2, $3)
