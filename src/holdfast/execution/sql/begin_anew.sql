-- Begins a call with an unknown outcome again, because a person decided so. Clears its earlier error and output.
with begun as (
  update tool_executions e
  set status = 'running', leased_until = holdfast.now() + $3::interval, correlation_id = $4, error = null, output_result = null, latency_ms = null,
    finished_at = null
  where e.tenant_id = $1 and e.id = $2 and e.run_id is null and e.status = 'unknown'
  returning e.id, e.leased_until
), gone as (
  delete from tool_output o using begun where o.tenant_id = $1 and o.execution_id = $2
)
select leased_until from begun
