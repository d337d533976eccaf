-- Stores what a run does in a step, all or nothing: the model's reply, calls that start, the outcome of a call, and new nodes. Nothing is stored if
-- another process has the run. Streamed text that has become a node is deleted. A call that was started before, and may be repeated, is started again.
drop function if exists holdfast.append_in_run(
  uuid, uuid, bigint, uuid[], text[], text[], text[], text[], jsonb[], text[], int, text[], text[], jsonb[], uuid[], uuid[], text[],
  text, text, jsonb, text, double precision, bytea, text, json, jsonb, text, bigint, bigint, double precision, bigint, timestamptz);
create or replace function holdfast.append_in_run(
  tenant uuid, run uuid, claim bigint, step int, reply holdfast.step_reply, begun holdfast.started_call[], ended holdfast.call_outcome,
  nodes holdfast.node_draft[]
) returns table (outcome text, id uuid, seq bigint, revision bigint, at timestamptz, topic text) language plpgsql as $$
#variable_conflict use_column
declare
  held public.runs := holdfast.held_run(tenant, run, claim);
  node holdfast.node_draft;
  said record;
begin
  if held.id is null then
    return query select 'lapsed', null::uuid, null::bigint, null::bigint, null::timestamptz, null::text;
    return;
  end if;
  if reply.began is not null then
    perform holdfast.keep_reply(tenant, run, step, append_in_run.reply);
  end if;
  if cardinality(begun) > 0 then
    -- The former output of a call is not the output of the repeated one. A call that a worker still carries out may have its output already.
    delete from public.tool_output o
      using public.tool_executions e, unnest(begun) as given
      where o.tenant_id = tenant and o.execution_id = e.id and e.tenant_id = tenant and e.run_id = run and e.step = append_in_run.step
        and e.call_id = given.call and (e.correlation_id = given.correlation_id) is not true;
    insert into public.tool_executions (
        tenant_id, id, run_id, step, call_id, tool, tool_id, input_params, status, token, correlation_id, user_name, agent)
      select tenant, given.execution, run, append_in_run.step, given.call, given.tool, given.tool_id, given.arguments, 'running', claim,
        given.correlation_id, held.user_name, held.agent
      from unnest(begun) as given
      on conflict (tenant_id, run_id, step, call_id) where run_id is not null do update
        set status = 'running', token = excluded.token, tool_id = excluded.tool_id, correlation_id = excluded.correlation_id,
          created_at = holdfast.now(), output_result = null, error = null, latency_ms = null, finished_at = null;
  end if;
  if ended.call is not null then
    update public.tool_executions e
      set status = ended.status, output_result = ended.output, error = ended.error, latency_ms = ended.latency_ms,
        finished_at = holdfast.now()
      where e.tenant_id = tenant and e.run_id = run and e.step = append_in_run.step and e.call_id = ended.call;
    if ended.whole is not null then
      insert into public.tool_output (tenant_id, execution_id, content_type, content)
        select tenant, e.id, ended.content_type, ended.whole from public.tool_executions e
        where e.tenant_id = tenant and e.run_id = run and e.step = append_in_run.step and e.call_id = ended.call
        on conflict (tenant_id, execution_id) do update set content_type = excluded.content_type, content = excluded.content;
    end if;
  end if;
  if cardinality(nodes) > 0 then
    delete from public.turn_delta d where d.tenant_id = tenant and d.run_id = run and d.kind in ('token', 'thinking');
  end if;
  if cardinality(nodes) = 1 then  -- nearly always: append_all takes a fifth longer for one node
    node := nodes[1];
    said := holdfast.append(
      tenant, held.root, node.id, null, node.context_type, node.context_name, node.context_value, node.content, node.payload, null, null, node.key,
      null, null, null);
    return query select said.outcome, said.id, said.seq, said.revision, said.at, said.topic;
  elsif cardinality(nodes) > 1 then
    return query select a.outcome, a.id, a.seq, a.revision, a.at, a.topic
      from (
        select array_agg(d.id) as ids, array_agg(d.context_type) as types, array_agg(d.context_name) as names,
          array_agg(d.context_value) as vals, array_agg(d.content) as contents, array_agg(d.payload) as payloads, array_agg(d.key) as keys,
          array_agg(null::text) as forms, array_agg(null::json) as natives
        from unnest(nodes) as d
      ) given,
      holdfast.append_all(
        tenant, held.root, given.ids, given.types, given.names, given.vals, given.contents, given.payloads, given.forms, given.natives,
        given.keys, null, null, null) a;
  end if;
end $$;
revoke execute on function holdfast.append_in_run from public;
grant execute on function holdfast.append_in_run to holdfast_app;
