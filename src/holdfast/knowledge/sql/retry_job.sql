-- Runs a failed job again, from where it was. Returns its id; null if it has not failed or a newer one exists.
select holdfast.retry_job($1, $2)
