-- Cancels a command that is not finished: stores an answer that says so, and outdates the token of its worker. Returns nulls if it is unknown.
create or replace function holdfast.cancel_command(
  tenant uuid, command text, completion uuid, error json, usual text, out state text, out topic text
) language plpgsql as $$
#variable_conflict use_column
declare
  reply text;
begin
  select c.state, c.reply_to from public.command c where c.tenant_id = tenant and c.correlation_id = command for update
    into cancel_command.state, reply;
  if cancel_command.state is null or cancel_command.state not in ('queued', 'running') then
    return;
  end if;
  cancel_command.state := 'cancelled';
  update public.command c set token = c.token + 1 where c.tenant_id = tenant and c.correlation_id = command;
  perform holdfast.settle_commands(
    tenant, array[command], array[completion], array[null::json], array[cancel_command.error], array[null::text], array['cancelled'], usual, false);
  select coalesce(max(t.name), usual) from public.topic t where t.tenant_id = tenant and t.name = reply into cancel_command.topic;
end $$;
revoke execute on function holdfast.cancel_command from public;
grant execute on function holdfast.cancel_command to holdfast_app;
