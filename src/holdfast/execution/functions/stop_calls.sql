-- Cancels the unfinished commands of calls whose callers are gone, by the correlation ids of the calls.
-- `reached`: `answered`; `untouched`, if no worker had begun the call, and none will; `begun`, if a worker had begun it and its outcome is unknown.
create or replace function holdfast.stop_calls(tenant uuid, calls text[]) returns table (call text, reached text) language plpgsql as $$
#variable_conflict use_column
declare
  ids text[] := array(select given || try from unnest(calls) as given, unnest(array['', '#2', '#3']) as try);
  unfinished text[];
begin
  select array_agg(c.correlation_id) from (
      select c.correlation_id from public.command c
      where c.tenant_id = tenant and c.correlation_id = any(ids) and c.state in ('queued', 'running') order by c.correlation_id for update
    ) c into unfinished;
  if unfinished is not null then
    update public.command c set token = c.token + 1 where c.tenant_id = tenant and c.correlation_id = any(unfinished);
    perform holdfast.settle_commands(
      tenant, unfinished, array(select holdfast.uuid7() from unnest(unfinished)), array_fill(null::json, array[cardinality(unfinished)]),
      array_fill('{"code": "cancelled", "message": "whoever asked for it is gone"}'::json, array[cardinality(unfinished)]),
      array_fill(null::text, array[cardinality(unfinished)]), array_fill('cancelled'::text, array[cardinality(unfinished)]), 'agent-events', false);
  end if;
  return query
    select given, case
        when bool_or(a.error is null or a.error ->> 'code' not in ('cancelled', 'lost')) then 'answered'
        when bool_and(c.started_at is null) then 'untouched'
        else 'begun' end
      from unnest(calls) as given
      join public.command c on c.tenant_id = tenant and c.correlation_id = any(ids)
        and c.correlation_id in (given, given || '#2', given || '#3')
      join public.command_completion a on a.tenant_id = tenant and a.correlation_id = c.correlation_id and a.correlation_id = any(ids) and a.applied
      group by given;
end $$;
revoke execute on function holdfast.stop_calls from public;
grant execute on function holdfast.stop_calls to holdfast_app;
