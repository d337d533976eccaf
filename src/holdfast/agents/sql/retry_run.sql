-- Stores another attempt at a run.
select * from holdfast.retry_run($1, $2, $3)
