-- The tools that earlier attempts at a run used without that it is known whether they took effect. The runs come first: they are few, and what is
-- unknown in the whole tenant need not be.
with former as materialized (select r.id from runs r where r.tenant_id = $1 and r.trigger = $2 and r.agent = $3 and r.attempt < $4)
select e.id, e.step, e.call_id, e.tool, e.input_params, e.status, e.token, e.output_result, e.error, e.latency_ms, e.tool_id,
  e.correlation_id
from former r join tool_executions e on e.tenant_id = $1 and e.run_id = r.id and e.status = 'unknown'
