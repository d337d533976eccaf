-- Writes down that somebody calls a tool directly. A key is for one call of one person: the same once more finds what came of the first.
-- `outcome`: begun; known, with what it is by now; another, where the key is of another call.
create or replace function holdfast.begin_execution(
  tenant uuid, execution uuid, tool_id uuid, tool text, arguments jsonb, person text, agent text, key text, lease interval, correlation text,
  out outcome text, out id uuid, out status text, out leased_until timestamptz
) language plpgsql as $$
#variable_conflict use_column
declare
  known public.tool_executions;
begin
  insert into public.tool_executions as e (
      tenant_id, id, tool_id, tool, input_params, status, user_name, agent, key, leased_until, correlation_id)
    values (tenant, execution, begin_execution.tool_id, begin_execution.tool, arguments, 'running', person, begin_execution.agent,
      begin_execution.key, holdfast.now() + lease, correlation)
    on conflict (tenant_id, key, (coalesce(user_name, ''))) where key is not null do nothing
    returning e.id, e.status, e.leased_until into begin_execution.id, begin_execution.status, begin_execution.leased_until;
  if found then
    outcome := 'begun';
    return;
  end if;
  perform holdfast.lapse_executions(tenant, (
    select e.id from public.tool_executions e
    where e.tenant_id = tenant and e.key = begin_execution.key and coalesce(e.user_name, '') = coalesce(person, '')));
  select e.* from public.tool_executions e
    where e.tenant_id = tenant and e.key = begin_execution.key and coalesce(e.user_name, '') = coalesce(person, '') into known;
  begin_execution.id := known.id;
  begin_execution.status := known.status;
  outcome := case when known.tool = begin_execution.tool and known.input_params = arguments then 'known' else 'another' end;
end $$;
revoke execute on function holdfast.begin_execution from public;
grant execute on function holdfast.begin_execution to holdfast_app;

-- Executions whose caller was not heard of in time: what may run again has failed, of the others nobody knows whether they took effect.
-- `one`: that one alone. How many there were.
create or replace function holdfast.lapse_executions(tenant uuid, one uuid) returns int language plpgsql as $$
#variable_conflict use_column
declare
  lapsed int;
begin
  with due as materialized (
    select e.id, e.tool_id from public.tool_executions e
    where e.tenant_id = tenant and e.run_id is null and e.status = 'running' and e.leased_until <= holdfast.now() and (one is null or e.id = one)
    order by e.id limit 1000 for update skip locked
  )
  update public.tool_executions e
    set status = case when t.idempotent then 'failed' else 'unknown' end, finished_at = holdfast.now(),
      error = case when t.idempotent then 'whoever called it stopped meanwhile; it may be called again'
        else 'whoever called it stopped meanwhile: it may have taken effect, or not' end
    from due left join public.tool_t t on t.host_id = tenant and t.tool_id = due.tool_id
    where e.tenant_id = tenant and e.id = due.id;
  get diagnostics lapsed = row_count;
  return lapsed;
end $$;
revoke execute on function holdfast.lapse_executions from public;
grant execute on function holdfast.lapse_executions to holdfast_app;
