-- Ends a run.
select * from holdfast.finish_run($1, $2, $3, $4, $5, $6)
