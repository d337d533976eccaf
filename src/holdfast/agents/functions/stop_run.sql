-- Stops a run: if a process holds it, the process is asked to stop; otherwise the run ends at once. A run that has ended stays unchanged.
-- The conversation's row is locked by the caller or here, always before the run's row.
create or replace function holdfast.stop_run(tenant uuid, run uuid, why text, out outcome text) language plpgsql as $$
#variable_conflict use_column
declare
  held public.runs;
begin
  select r.* from public.runs r where r.tenant_id = tenant and r.id = run into held;
  perform from public.conversation c where c.tenant_id = tenant and c.id = held.root for update;
  select r.* from public.runs r where r.tenant_id = tenant and r.id = run for update into held;
  if not found then
    outcome := 'missing';
  elsif held.finished_at is not null then
    outcome := 'ended';
  elsif held.state = 'running' and held.leased_until > holdfast.now() then
    update public.runs r set stop = coalesce(r.stop, why) where r.tenant_id = tenant and r.id = run;
    outcome := 'told';
  else
    perform holdfast.end_run(tenant, run, 'cancelled', null, null);
    outcome := 'stopped';
  end if;
end $$;
revoke execute on function holdfast.stop_run from public;
grant execute on function holdfast.stop_run to holdfast_app;

-- Ends a run whose conversation is locked: withdraws its approvals, deletes its streamed text, and stores its last event for the watchers. If it gave
-- no answer, a node says so.
-- Delta numbers only grow: the last event of a run that was still queued is stored when the runs before it have ended.
create or replace function holdfast.end_run(
  tenant uuid, run uuid, ending text, answer uuid, error jsonb, out told jsonb
) language plpgsql as $$
#variable_conflict use_column
declare
  ended public.runs;
begin
  update public.runs r
    set state = ending, answer = coalesce(end_run.answer, r.answer), error = end_run.error, finished_at = holdfast.now(),
      leased_until = null, holder = null
    where r.tenant_id = tenant and r.id = run returning r.* into ended;
  perform holdfast.give_up_calls(tenant, run);
  if ending <> 'done' then
    perform holdfast.observe_rest(tenant, ended);
    perform holdfast.mark_unanswered(tenant, ended);
  end if;
  update public.approval a set state = 'withdrawn', decided_at = holdfast.now()
    where a.tenant_id = tenant and a.run_id = run and a.state = 'pending';
  delete from public.turn_delta d where d.tenant_id = tenant and d.run_id = run and d.kind in ('token', 'thinking');
  told := jsonb_build_object('state', ending, 'error', end_run.error, 'answer', ended.answer, 'input_tokens', ended.input_tokens,
    'output_tokens', ended.output_tokens, 'cost', ended.cost, 'steps', ended.steps);
  insert into public.turn_delta (tenant_id, root, n, run_id, kind, data)
    select tenant, r.root, r.number * 10000000000 + 9999999999, r.id, case when r.state = 'failed' then 'error' else 'done' end,
      case when r.id = run then told else jsonb_build_object('state', r.state, 'error', r.error, 'steps', r.steps) end
    from public.runs r
    where r.tenant_id = tenant and r.root = ended.root and r.number >= ended.number and r.finished_at is not null
      and not exists (
        select from public.runs former where former.tenant_id = tenant and former.root = ended.root and former.finished_at is null
          and former.number < r.number);
end $$;
revoke execute on function holdfast.end_run from public;
grant execute on function holdfast.end_run to holdfast_app;

-- Gives up the unfinished calls of a run that ends, and cancels them at workers. Their outcome is unknown, unless no worker had started them.
create or replace function holdfast.give_up_calls(tenant uuid, run uuid) returns void language plpgsql as $$
#variable_conflict use_column
declare
  calls text[];
begin
  perform from public.tool_executions e where e.tenant_id = tenant and e.run_id = run and e.status = 'running';
  if not found then
    return;
  end if;
  calls := array(
    select e.correlation_id from public.tool_executions e
    where e.tenant_id = tenant and e.run_id = run and e.status = 'running' and e.correlation_id is not null);
  update public.tool_executions e
    set status = 'failed', finished_at = holdfast.now(), error = 'no worker had begun it',
      output_result = '{"text": "It was not made: no worker had begun it when its turn ended."}'
    from holdfast.stop_calls(tenant, calls) s
    where e.tenant_id = tenant and e.run_id = run and e.status = 'running' and e.correlation_id = s.call and s.reached = 'untouched';
  update public.tool_executions e set status = 'unknown', finished_at = holdfast.now()
    where e.tenant_id = tenant and e.run_id = run and e.status = 'running';
end $$;
revoke execute on function holdfast.give_up_calls from public;
grant execute on function holdfast.give_up_calls to holdfast_app;

-- Appends the results of calls whose run ended before it could append them, also of calls whose outcome is unknown, so that no agent repeats them
-- without knowing.
drop function if exists holdfast.observe_rest(uuid, uuid, uuid);
create or replace function holdfast.observe_rest(tenant uuid, ended public.runs) returns void language plpgsql as $$
#variable_conflict use_column
declare
  run constant uuid := ended.id;
  conversation constant uuid := ended.root;
  rest record;
begin
  select array_agg(holdfast.uuid7()) as ids, array_agg('text'::text) as types, array_agg('agent'::text) as names, array_agg('tool'::text) as vals,
      array_agg(case when e.status = 'unknown'
        then 'It is not known whether this call took effect: the turn that made it ended meanwhile.'
        else coalesce(e.output_result ->> 'text', '') end order by e.step, e.created_at) as contents,
      array_agg(jsonb_build_object('role', 'tool', 'tool_call_id', e.call_id, 'tool_name', e.tool, 'run', run,
          'answers', to_jsonb(ended.trigger_seq || ended.merged))
        || case when e.status = 'done' then '{}'::jsonb else '{"error": true}' end order by e.step, e.created_at) as payloads,
      array_agg(format('run:%s:%s:%s', run, e.step, e.call_id) order by e.step, e.created_at) as keys
    from public.tool_executions e
    where e.tenant_id = tenant and e.run_id = run and not exists (
      select from public.node n where n.tenant_id = tenant and n.root = conversation
        and n.key = format('run:%s:%s:%s', run, e.step, e.call_id))
    into rest;
  if rest.ids is not null then
    perform holdfast.append_all(
      tenant, conversation, rest.ids, rest.types, rest.names, rest.vals, rest.contents, rest.payloads,
      array_fill(null::text, array[cardinality(rest.ids)]), array_fill(null::json, array[cardinality(rest.ids)]), rest.keys, null, null, null);
  end if;
end $$;
revoke execute on function holdfast.observe_rest from public;
grant execute on function holdfast.observe_rest to holdfast_app;

-- Appends a node that says that a run ended without an answer, so that its messages are not joined to the next one (agents/history.py).
create or replace function holdfast.mark_unanswered(tenant uuid, ended public.runs) returns void language plpgsql as $$
declare
  seqs constant bigint[] := ended.trigger_seq || ended.merged;
begin
  if ended.answer is null then
    perform holdfast.append(
      tenant, ended.root, holdfast.uuid7(), null, 'unanswered', 'agent', ended.agent,
      format('%s %s not answered: the turn %s.', case when cardinality(seqs) = 1 then 'Message' else 'Messages' end,
        array_to_string(seqs, ', ') || case when cardinality(seqs) = 1 then ' was' else ' were' end,
        case ended.state when 'failed' then 'failed' else 'was stopped' end),
      jsonb_build_object('run', ended.id, 'answers', to_jsonb(seqs), 'state', ended.state, 'code', ended.error ->> 'code'),
      null, null, format('run:%s:unanswered', ended.id), null, null, null);
  end if;
end $$;
revoke execute on function holdfast.mark_unanswered from public;
grant execute on function holdfast.mark_unanswered to holdfast_app;
