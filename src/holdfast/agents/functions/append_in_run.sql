-- Stores what a run does, all or nothing: the model's reply, calls that start, the outcome of a call, and new nodes. Nothing is stored if another
-- process has the run. Streamed text that has become a node is deleted. A call that was started before, and may be repeated, is started again.
drop function if exists holdfast.append_in_run(
  uuid, uuid, bigint, uuid[], text[], text[], text[], text[], jsonb[], text[], int, text[], text[], jsonb[], uuid[], uuid[], text[],
  text, text, jsonb, text, double precision, bytea, text);
create or replace function holdfast.append_in_run(
  tenant uuid, run uuid, claim bigint, nodes uuid[], types text[], names text[], vals text[], contents text[], payloads jsonb[],
  node_keys text[], step int, begun text[], tools text[], arguments jsonb[], executions uuid[], tool_ids uuid[], correlations text[],
  ended text, status text, output jsonb, error text, latency double precision, whole bytea, kind text,
  sent json, reply jsonb, model text, input_tokens bigint, output_tokens bigint, cost double precision, seen bigint, began timestamptz
) returns table (outcome text, id uuid, seq bigint, revision bigint, at timestamptz, topic text) language plpgsql as $$
#variable_conflict use_column
declare
  held public.runs := holdfast.held_run(tenant, run, claim);
  said record;
begin
  if held.id is null then
    return query select 'lapsed', null::uuid, null::bigint, null::bigint, null::timestamptz, null::text;
    return;
  end if;
  if reply is not null then
    perform holdfast.keep_reply(tenant, run, step, sent, reply, model, input_tokens, output_tokens, cost, seen, began);
  end if;
  if cardinality(begun) > 0 then
    -- The former output of a call is not the output of the repeated one. A call that a worker still carries out may have its output already.
    delete from public.tool_output o
      using public.tool_executions e, unnest(begun, correlations) as given (call, correlation)
      where o.tenant_id = tenant and o.execution_id = e.id and e.tenant_id = tenant and e.run_id = run and e.step = append_in_run.step
        and e.call_id = given.call and (e.correlation_id = given.correlation) is not true;
    insert into public.tool_executions (
        tenant_id, id, run_id, step, call_id, tool, tool_id, input_params, status, token, correlation_id, user_name, agent)
      select tenant, given.id, run, append_in_run.step, given.call, given.tool, given.tool_id, given.arguments, 'running', claim,
        given.correlation, held.user_name, held.agent
      from unnest(begun, tools, append_in_run.arguments, executions, tool_ids, correlations)
        as given (call, tool, arguments, id, tool_id, correlation)
      on conflict (tenant_id, run_id, step, call_id) do update
        set status = 'running', token = excluded.token, tool_id = excluded.tool_id, correlation_id = excluded.correlation_id,
          created_at = holdfast.now(), output_result = null, error = null, latency_ms = null, finished_at = null;
  end if;
  if ended is not null then
    update public.tool_executions e
      set status = append_in_run.status, output_result = output, error = append_in_run.error, latency_ms = latency,
        finished_at = holdfast.now()
      where e.tenant_id = tenant and e.run_id = run and e.step = append_in_run.step and e.call_id = ended;
    if whole is not null then
      insert into public.tool_output (tenant_id, execution_id, content_type, content)
        select tenant, e.id, append_in_run.kind, whole from public.tool_executions e
        where e.tenant_id = tenant and e.run_id = run and e.step = append_in_run.step and e.call_id = ended
        on conflict (tenant_id, execution_id) do update set content_type = excluded.content_type, content = excluded.content;
    end if;
  end if;
  if cardinality(nodes) > 0 then
    delete from public.turn_delta d where d.tenant_id = tenant and d.run_id = run and d.kind in ('token', 'thinking');
  end if;
  if cardinality(nodes) = 1 then  -- nearly always: append_all takes a fifth longer for one node
    said := holdfast.append(
      tenant, held.root, nodes[1], null, types[1], names[1], vals[1], contents[1], payloads[1], null, null, node_keys[1], null, null, null);
    return query select said.outcome, said.id, said.seq, said.revision, said.at, said.topic;
  elsif cardinality(nodes) > 1 then
    return query select a.outcome, a.id, a.seq, a.revision, a.at, a.topic from holdfast.append_all(
      tenant, held.root, nodes, types, names, vals, contents, payloads, array_fill(null::text, array[cardinality(nodes)]),
      array_fill(null::json, array[cardinality(nodes)]), node_keys, null, null, null) a;
  end if;
end $$;
revoke execute on function holdfast.append_in_run from public;
grant execute on function holdfast.append_in_run to holdfast_app;
