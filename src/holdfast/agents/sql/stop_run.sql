-- Has a run end.
select holdfast.stop_run($1, $2, $3)
