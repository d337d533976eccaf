-- Redrives a dead letter. A record is delivered to its group once more. A command is queued again, its completion is no longer applied, and
-- its invocation is published once more for foreign workers, which only read the log.
create or replace function holdfast.redrive(tenant uuid, letter uuid, out "group" text) language plpgsql as $$
#variable_conflict use_column
declare
  command text;
  asked public.command;
begin
  update public.dead_letter d set state = 'redriven' where d.tenant_id = tenant and d.id = letter
    returning d.group_name, d.correlation_id into redrive."group", command;
  if command is null then
    return;
  end if;
  delete from public.dead_letter d where d.tenant_id = tenant and d.id = letter;
  update public.command c set
      state = 'queued', attempts = 0, run_at = holdfast.now(), started_at = null, finished_at = null, worker = null, error = null
    where c.tenant_id = tenant and c.correlation_id = command and c.state = 'dead' returning c.* into asked;
  if asked.correlation_id is null then
    return;
  end if;
  update public.command_completion a set applied = false where a.tenant_id = tenant and a.correlation_id = command and a.applied;
  perform holdfast.publish_all(
      tenant, array['agent-commands'], array[asked.hash], array[command], array[holdfast.uuid7()], array[told.head], array[told.value],
      array[octet_length(told.value::text) + octet_length(told.head::text) + octet_length(command) + 100])
    from (
      select holdfast.invocation_of(asked) as value, json_strip_nulls(json_build_object(
        'content-type', 'application/json', 'holdfast-schema', 'skill-invocation/1.0.0', 'holdfast-command', command,
        'traceparent', asked.headers -> 'traceparent', 'tracestate', asked.headers -> 'tracestate')) as head
    ) told;
end $$;
revoke execute on function holdfast.redrive from public;
grant execute on function holdfast.redrive to holdfast_app;
