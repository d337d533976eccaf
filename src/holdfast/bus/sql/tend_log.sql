-- Makes partitions of the records for the days to come, and drops those that are old and that nobody needs.
select made, dropped, skipped from holdfast.tend_log($1, $2, $3)
