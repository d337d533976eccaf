-- Fails an attempt at a command. The command is queued again after `wait`; after the last attempt, it gets the error as its answer and a dead letter.
-- `again`: whether a retry could help; if not, the error is the answer, without a dead letter. `lapsed`: only if the lease has expired.
-- `outcome`: queued, failed, dead, or lost if the claim is no longer the newest.
create or replace function holdfast.fail_command(
  tenant uuid, command text, token bigint, completion uuid, error json, again boolean, wait interval, lapsed boolean, usual text,
  out outcome text, out topic text
) language plpgsql as $$
#variable_conflict use_column
declare
  found_row public.command;
begin
  select * from public.command c
    where c.tenant_id = tenant and c.correlation_id = command and c.state = 'running' and c.token = fail_command.token
      and (not lapsed or c.leased_until <= holdfast.now())
    for update into found_row;
  if not found then
    outcome := 'lost';
    return;
  end if;
  if again and found_row.attempts < coalesce(found_row.max_attempts, 1) then
    update public.command c set
        state = 'queued', run_at = holdfast.now() + wait, worker = null, leased_until = null, error = fail_command.error ->> 'message'
      where c.tenant_id = tenant and c.correlation_id = command;
    outcome := 'queued';
    return;
  end if;
  outcome := case when again then 'dead' else 'failed' end;
  if again then
    insert into public.dead_letter (
      tenant_id, group_name, topic, partition, "offset", at, record_id, key, headers, value, correlation_id, error, attempts)
    values (
      tenant, 'workers', 'agent-commands', 0, 0, found_row.created_at, holdfast.uuid7(), command, found_row.headers,
      holdfast.invocation_of(found_row), command, fail_command.error ->> 'message', found_row.attempts);
  end if;
  perform holdfast.settle_commands(
    tenant, array[command], array[completion], array[null::json], array[fail_command.error], array[found_row.worker], array[outcome], usual, false);
  select coalesce(max(t.name), usual) from public.topic t where t.tenant_id = tenant and t.name = found_row.reply_to into fail_command.topic;
end $$;
revoke execute on function holdfast.fail_command from public;
grant execute on function holdfast.fail_command to holdfast_app;

-- Returns the invocation event of a command for the log.
create or replace function holdfast.invocation_of(asked public.command) returns json language plpgsql as $$
begin
  return json_build_object(
    'correlationId', asked.correlation_id, 'skillName', asked.skill, 'arguments', asked.arguments, 'replyTo', asked.reply_to);
end $$;
revoke execute on function holdfast.invocation_of from public;
grant execute on function holdfast.invocation_of to holdfast_app;
