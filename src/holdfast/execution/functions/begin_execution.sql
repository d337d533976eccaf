-- Records a direct call of a tool. An idempotency key belongs to one call of one user: a second call with the same key finds the first.
-- `outcome`: `begun`; `known`, with the current status of the first call; `another`, if the key belongs to a call of another tool or with other arguments.
create or replace function holdfast.begin_execution(
  tenant uuid, execution uuid, tool_id uuid, tool text, arguments jsonb, given jsonb, person text, agent text, key text, lease interval, correlation text,
  out outcome text, out id uuid, out status text, out leased_until timestamptz
) language plpgsql as $$
#variable_conflict use_column
declare
  known public.tool_executions;
begin
  loop
    insert into public.tool_executions as e (
        tenant_id, id, tool_id, tool, input_params, given_params, status, user_name, agent, key, leased_until, correlation_id)
      values (tenant, execution, begin_execution.tool_id, begin_execution.tool, arguments, given, 'running', person, begin_execution.agent,
        begin_execution.key, holdfast.now() + lease, correlation)
      on conflict (tenant_id, key, (coalesce(user_name, ''))) where key is not null do nothing
      returning e.id, e.status, e.leased_until into begin_execution.id, begin_execution.status, begin_execution.leased_until;
    if found then
      outcome := 'begun';
      return;
    end if;
    select e.* from public.tool_executions e
      where e.tenant_id = tenant and e.key = begin_execution.key and coalesce(e.user_name, '') = coalesce(person, '') into known;
    exit when found;  -- otherwise the sweeper has deleted it: try again
  end loop;
  perform holdfast.lapse_executions(tenant, known.id);
  begin_execution.id := known.id;
  begin_execution.status := (select e.status from public.tool_executions e where e.tenant_id = tenant and e.id = known.id);
  outcome := case when known.tool = begin_execution.tool and (known.input_params = arguments or known.given_params = given) then 'known' else 'another' end;
end $$;
revoke execute on function holdfast.begin_execution from public;
grant execute on function holdfast.begin_execution to holdfast_app;

-- Gives up direct calls whose lease has expired, and returns how many. A call that no worker had begun, or whose tool is idempotent, becomes `failed`. Any
-- other becomes `unknown`, because it may have taken effect. A call that a worker has answered is skipped: the sweeper stores the answer. `one`: only this
-- execution.
create or replace function holdfast.lapse_executions(tenant uuid, one uuid) returns int language plpgsql as $$
#variable_conflict use_column
declare
  due uuid[];
  lapsed int;
begin
  select array_agg(e.id) from (
      select e.id from public.tool_executions e
      where e.tenant_id = tenant and e.run_id is null and e.status = 'running' and e.leased_until <= holdfast.now() and (one is null or e.id = one)
      order by e.id limit 1000 for update skip locked
    ) e into due;
  if due is null then
    return 0;
  end if;
  with stopped as materialized (
    select s.call, s.reached from holdfast.stop_calls(tenant, array(
      select e.correlation_id from public.tool_executions e
      where e.tenant_id = tenant and e.id = any(due) and e.correlation_id is not null)) s
  ), given as (
    select e.id, s.reached, coalesce(t.idempotent, false) as idempotent from public.tool_executions e
      left join stopped s on s.call = e.correlation_id
      left join public.tool_t t on t.host_id = tenant and t.tool_id = e.tool_id
    where e.tenant_id = tenant and e.id = any(due) and s.reached is distinct from 'answered'
  )
  update public.tool_executions e
    set status = case when given.idempotent or given.reached = 'untouched' then 'failed' else 'unknown' end, finished_at = holdfast.now(),
      error = case when given.reached = 'untouched' then 'its process stopped before a worker started it: it did not run'
        when given.idempotent then 'its process stopped; it can be called again'
        else 'its process stopped; it may have taken effect' end
    from given where e.tenant_id = tenant and e.id = given.id and e.id = any(due);
  get diagnostics lapsed = row_count;
  return lapsed;
end $$;
revoke execute on function holdfast.lapse_executions from public;
grant execute on function holdfast.lapse_executions to holdfast_app;
