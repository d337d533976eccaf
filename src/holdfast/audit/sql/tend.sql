-- Creates the months that come, and drops those past retention.
select made, dropped, skipped from holdfast.tend_audit($1, $2)
