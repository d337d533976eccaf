-- Records calls before they begin, many in one commit. Returns until when each is leased.
insert into tool_executions (tenant_id, id, tool_id, tool, input_params, status, user_name, agent, leased_until, correlation_id)
select $1, c.id, c.tool_id, c.tool, c.input_params, 'running', c.user_name, c.agent, holdfast.now() + make_interval(secs => c.lease), c.correlation_id
from json_to_recordset($2::text::json) as c (
  id uuid, tool_id uuid, tool text, input_params jsonb, user_name text, agent text, lease double precision, correlation_id text)
on conflict (tenant_id, id) do update set leased_until = excluded.leased_until
returning id, leased_until
