-- Stores what a tool gave.
update tool_executions e set status = $5, output_result = $6, error = $7, latency_ms = $8, finished_at = holdfast.now()
where e.tenant_id = $1 and e.id = $2 and e.token = $4 and exists (
  select from runs r where r.tenant_id = $1 and r.id = $3 and r.token = $4 and r.finished_at is null)
