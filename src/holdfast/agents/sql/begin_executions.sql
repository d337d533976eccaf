-- Stores that tools are being run, as long as the run is held by this token; one that was begun before, and may be again, is renewed.
-- The run is locked: who takes it meanwhile waits, and then sees that they were begun.
insert into tool_executions (tenant_id, id, run_id, step, call_id, tool, input_params, status, token)
select $1, given.id, $2, $4, given.call, given.tool, given.arguments, 'running', $3
from unnest($5::uuid[], $6::text[], $7::text[], $8::jsonb[]) as given (id, call, tool, arguments)
where exists (select from runs r where r.tenant_id = $1 and r.id = $2 and r.token = $3 and r.finished_at is null for share)
on conflict (tenant_id, run_id, step, call_id) do update
  set status = 'running', token = excluded.token, created_at = holdfast.now(), output_result = null, error = null, finished_at = null
  where tool_executions.token < excluded.token
returning call_id, id
