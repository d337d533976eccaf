-- Lists the executions of earlier attempts at a run whose outcome is unknown. The CTE selects the few runs first, because a tenant can have many
-- executions with an unknown outcome.
with former as materialized (select r.id from runs r where r.tenant_id = $1 and r.trigger = $2 and r.agent = $3 and r.attempt < $4)
select e.id, e.step, e.call_id, e.tool, e.input_params, e.status, e.token, e.output_result, e.error, e.latency_ms, e.tool_id,
  e.correlation_id
from former r join tool_executions e on e.tenant_id = $1 and e.run_id = r.id and e.status = 'unknown'
