-- Begins a call of a model for a research, or returns the answer that is stored for it.
--   `answered`  it was asked before, in this process or another: its answer is returned
--   `begun`     the call counts, and the most that it can use is reserved
--   `spent`     the budget has too little left; `held` says that calls in progress may give back what they do not use
--   `stopped`   somebody has cancelled the research
--   `lapsed`    this process no longer holds it
-- The row of the research is locked, so that calls that begin together cannot exceed the budget together. `spare` is kept for later steps.
create or replace function holdfast.begin_research_call(
  tenant uuid, research uuid, lease_epoch int, call_key uuid, call_step text, most_tokens bigint, most_cost double precision,
  spare_calls int, spare_tokens bigint, spare_cost double precision
) returns table (outcome text, answer text, reason text, held boolean) language plpgsql as $$
#variable_conflict use_column
declare
  run public.research;
  former public.research_call;
  wanted bigint;
  wanted_cost double precision;
begin
  select r.* into run from public.research r where r.tenant_id = tenant and r.id = research for update;
  held := false;
  if run.id is null or run.epoch <> lease_epoch or run.state <> 'running' then
    outcome := 'lapsed';
    return next;
    return;
  end if;
  select c.* into former from public.research_call c where c.tenant_id = tenant and c.research_id = research and c.key = call_key;
  if former.state = 'done' then
    outcome := 'answered';
    answer := former.answer;
    reason := former.reason;
    return next;
    return;
  end if;
  if run.stop then
    outcome := 'stopped';
    return next;
    return;
  end if;
  wanted := ceil(most_tokens * run.overrun)::bigint;
  wanted_cost := most_cost * run.overrun;
  if run.calls + 1 + spare_calls > run.max_calls or run.tokens + run.reserved + wanted + spare_tokens > run.max_tokens
    or run.cost + run.reserved_cost + wanted_cost + spare_cost > run.max_cost
  then
    outcome := 'spent';
    held := run.reserved > 0 and run.calls + 1 + spare_calls <= run.max_calls;
    return next;
    return;
  end if;
  update public.research r set calls = r.calls + 1, reserved = r.reserved + wanted, reserved_cost = r.reserved_cost + wanted_cost
    where r.tenant_id = tenant and r.id = research;
  insert into public.research_call as c (tenant_id, research_id, key, step, reserved, reserved_cost)
    values (tenant, research, call_key, call_step, wanted, wanted_cost)
    on conflict (tenant_id, research_id, key) do update
      set requests = c.requests + 1, reserved = excluded.reserved, reserved_cost = excluded.reserved_cost;
  outcome := 'begun';
  return next;
end $$;
revoke execute on function holdfast.begin_research_call from public;
grant execute on function holdfast.begin_research_call to holdfast_app;
