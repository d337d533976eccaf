-- Records calls that have ended, many in one commit. $3 is the caller's own clock, by which each call began and ended: the row has the times of the
-- database's clock. A record that was written already, by a statement whose answer was lost, is skipped.
insert into tool_executions (
  tenant_id, id, tool_id, tool, input_params, output_result, status, error, latency_ms, user_name, agent, created_at, finished_at)
select $1, c.id, c.tool_id, c.tool, c.input_params, c.output_result, c.status, c.error, c.latency_ms, c.user_name, c.agent,
  holdfast.now() - make_interval(secs => $3::double precision - c.began), holdfast.now() - make_interval(secs => $3::double precision - c.ended)
from json_to_recordset($2::text::json) as c (
  id uuid, tool_id uuid, tool text, input_params jsonb, output_result jsonb, status text, error text, latency_ms double precision, user_name text, agent text,
  began double precision, ended double precision)
on conflict (tenant_id, id) do nothing
