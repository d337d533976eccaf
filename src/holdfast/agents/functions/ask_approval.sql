-- Requests approvals for calls. The run waits for the decisions, and no process holds it meanwhile. `last`: the number of the last delta of the run.
create or replace function holdfast.ask_approval(
  tenant uuid, run uuid, claim bigint, ids uuid[], step int, calls text[], tools text[], arguments jsonb[], reasons text[],
  last bigint, out outcome text
) language plpgsql as $$
#variable_conflict use_column
declare
  held public.runs := holdfast.held_run(tenant, run, claim);
begin
  if held.id is null then
    outcome := 'lapsed';
    return;
  end if;
  update public.tool_executions e set status = 'unknown'
    from unnest(calls, reasons) as given (call, reason)
    where e.tenant_id = tenant and e.run_id = run and e.step = ask_approval.step and e.call_id = given.call and e.status = 'running'
      and given.reason = 'unknown';
  insert into public.approval (tenant_id, id, run_id, root, step, call_id, tool, arguments, user_name, reason)
    select tenant, given.id, run, held.root, ask_approval.step, given.call, given.tool, given.arguments, held.user_name, given.reason
    from unnest(ids, calls, tools, ask_approval.arguments, reasons) as given (id, call, tool, arguments, reason)
    -- An approval to repeat a call is valid once: if the repeated call has an unknown outcome too, a new decision is needed.
    on conflict (tenant_id, run_id, step, call_id, reason) do update
      set id = excluded.id, state = 'pending', decided_by = null, comment = null, decided_at = null, created_at = holdfast.now()
      where approval.reason = 'unknown' and approval.state = 'approved' and exists (
        select from public.tool_executions e where e.tenant_id = tenant and e.run_id = run and e.step = ask_approval.step
          and e.call_id = excluded.call_id and e.created_at > approval.decided_at);
  insert into public.turn_delta (tenant_id, root, n, run_id, kind, data)
    select tenant, held.root, last + row_number() over (order by a.id), run, 'approval',
      jsonb_build_object('approval', a.id, 'call', a.call_id, 'tool', a.tool, 'arguments', a.arguments, 'reason', a.reason)
    from public.approval a where a.tenant_id = tenant and a.run_id = run and a.id = any(ids);
  if exists (select from public.approval a where a.tenant_id = tenant and a.run_id = run and a.state = 'pending') then
    update public.runs r set state = 'waiting', holder = null, leased_until = null where r.tenant_id = tenant and r.id = run;
    outcome := 'waiting';
  else
    outcome := 'decided';
  end if;
end $$;
revoke execute on function holdfast.ask_approval from public;
grant execute on function holdfast.ask_approval to holdfast_app;

-- Returns the last delta number that was used in a run.
create or replace function holdfast.next_delta(tenant uuid, conversation uuid, run bigint) returns bigint language plpgsql as $$
begin
  return coalesce(
    (select max(d.n) from public.turn_delta d where d.tenant_id = tenant and d.root = conversation
      and d.n >= run * 10000000000 and d.n < run * 10000000000 + 9999999999),
    run * 10000000000);
end $$;
revoke execute on function holdfast.next_delta from public;
grant execute on function holdfast.next_delta to holdfast_app;

-- Approves or denies a call. The run continues when no approval is pending. `outcome`: decided, repeated, decided before, missing.
create or replace function holdfast.decide_approval(
  tenant uuid, approval uuid, decision text, person text, remark text, out outcome text, out run uuid, out state text
) language plpgsql as $$
#variable_conflict use_column
declare
  asked public.approval;
  held public.runs;
begin
  select a.* from public.approval a where a.tenant_id = tenant and a.id = approval into asked;
  if not found then
    outcome := 'missing';
    return;
  end if;
  perform from public.conversation c where c.tenant_id = tenant and c.id = asked.root for update;
  select r.* from public.runs r where r.tenant_id = tenant and r.id = asked.run_id for update into held;
  select a.* from public.approval a where a.tenant_id = tenant and a.id = approval into asked;
  decide_approval.run := asked.run_id;
  decide_approval.state := asked.state;
  if asked.state <> 'pending' then
    outcome := case when asked.state = decision then 'repeated' else 'decided before' end;
    return;
  end if;
  update public.approval a set state = decision, decided_by = person, comment = remark, decided_at = holdfast.now()
    where a.tenant_id = tenant and a.id = approval;
  insert into public.turn_delta (tenant_id, root, n, run_id, kind, data)
    values (tenant, asked.root, holdfast.next_delta(tenant, asked.root, held.number) + 1, asked.run_id, 'decision',
      jsonb_build_object('approval', approval, 'call', asked.call_id, 'tool', asked.tool, 'decision', decision, 'by', person));
  if not exists (
    select from public.approval a where a.tenant_id = tenant and a.run_id = asked.run_id and a.state = 'pending') then
    update public.runs r set state = 'queued', run_at = holdfast.now()
      where r.tenant_id = tenant and r.id = asked.run_id and r.state = 'waiting';
  end if;
  decide_approval.state := decision;
  outcome := 'decided';
end $$;
revoke execute on function holdfast.decide_approval from public;
grant execute on function holdfast.decide_approval to holdfast_app;
