-- Stores how calls ended that were recorded before they began, unless one was begun again since: then its lease ends at another time. A call that was given
-- up as `unknown` gets its outcome after all. $3 is the caller's own clock, by which each call ended.
update tool_executions e
set status = c.status, output_result = c.output_result, error = c.error, latency_ms = c.latency_ms,
  finished_at = holdfast.now() - make_interval(secs => $3::double precision - c.ended)
from json_to_recordset($2::text::json) as c (
  id uuid, leased_until timestamptz, status text, output_result jsonb, error text, latency_ms double precision, ended double precision)
where e.tenant_id = $1 and e.id = c.id and e.leased_until = c.leased_until and e.status in ('running', 'unknown')
