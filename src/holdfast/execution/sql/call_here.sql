-- A call that no worker took is made here: nobody waits for a worker any more.
update tool_executions e set correlation_id = null where e.tenant_id = $1 and e.correlation_id = $2
