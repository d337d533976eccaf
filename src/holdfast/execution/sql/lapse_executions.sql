-- Gives up executions whose caller was not heard of in time.
select holdfast.lapse_executions($1, null)
