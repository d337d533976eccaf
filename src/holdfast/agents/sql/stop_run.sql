-- Stops a run.
select holdfast.stop_run($1, $2, $3)
