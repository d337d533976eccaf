-- What a run writes (agents/functions/append_in_run.sql), as values with named parts. agents/journal.py has the same values.
create type holdfast.node_draft as (
  id uuid, context_type text, context_name text, context_value text, content text, payload jsonb, key text);
create type holdfast.step_reply as (
  sent json, reply jsonb, model text, input_tokens bigint, output_tokens bigint, cost double precision, seen bigint, began timestamptz);
create type holdfast.started_call as (
  call text, tool text, arguments jsonb, execution uuid, tool_id uuid, correlation_id text);
create type holdfast.call_outcome as (
  call text, status text, output jsonb, error text, latency_ms double precision, whole bytea, content_type text);
