-- Has a run come to an end: one that somebody holds is told to, any other ends at once. Nothing happens to one that has ended.
-- The conversation's row is locked by the caller, or here: always before the run's.
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

-- Ends a run whose conversation is locked: nobody waits for its approvals any more, its streamed text goes, those who watch are told.
-- Numbers rise: the end of a run that was still queued is told when those before it have ended.
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
