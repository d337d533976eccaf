-- Clears the correlation id of a call that no worker took: this process makes it, and nobody has to wait for a worker.
update tool_executions e set correlation_id = null where e.tenant_id = $1 and e.correlation_id = $2
