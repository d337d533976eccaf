-- Adds what model calls used to the rows of today, by user, agent and model. Rows are written in the order of their keys, so that writers do not
-- wait for each other in a circle. The day is in UTC, like the windows of budgets.
insert into model_usage (tenant_id, day, user_name, agent, model, calls, input_tokens, output_tokens, cost)
select $1, (holdfast.now() at time zone 'UTC')::date, g.user_name, g.agent, g.model, g.calls, g.input_tokens, g.output_tokens, g.cost
from jsonb_to_recordset($2::text::jsonb) as g (
  user_name text, agent text, model text, calls bigint, input_tokens bigint, output_tokens bigint, cost double precision)
order by g.user_name collate "C", g.agent collate "C", g.model collate "C"
on conflict (tenant_id, day, user_name, agent, model) do update set calls = model_usage.calls + excluded.calls,
  input_tokens = model_usage.input_tokens + excluded.input_tokens, output_tokens = model_usage.output_tokens + excluded.output_tokens, cost = model_usage.cost + excluded.cost
