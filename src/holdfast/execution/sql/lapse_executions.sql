-- Gives up direct calls whose lease has expired.
select holdfast.lapse_executions($1, null)
