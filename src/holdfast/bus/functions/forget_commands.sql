-- Deletes commands that finished longer than `keep` ago, and equally old completions without a command: at most a thousand of each.
-- Returns the number of deleted commands. A dead command is kept as long as its dead letter: it may be redriven.
create or replace function holdfast.forget_commands(tenant uuid, keep interval) returns int language plpgsql as $$
#variable_conflict use_column
declare
  old text[];
begin
  select array_agg(found.correlation_id) from (
      select c.correlation_id from public.command c
      where c.tenant_id = tenant and c.finished_at < holdfast.now() - keep and not (c.state = 'dead' and exists (
        select from public.dead_letter d where d.tenant_id = tenant and d.correlation_id = c.correlation_id))
      order by c.finished_at limit 1000 for update skip locked
    ) found into old;
  delete from public.command_completion a where a.tenant_id = tenant and a.correlation_id = any(old);
  delete from public.command c where c.tenant_id = tenant and c.correlation_id = any(old);
  delete from public.command_completion a using (
      select o.correlation_id, o.id from public.command_completion o
      where o.tenant_id = tenant and o.at < holdfast.now() - keep and not exists (
        select from public.command c where c.tenant_id = tenant and c.correlation_id = o.correlation_id)
      order by o.at limit 1000
    ) orphan
    where a.tenant_id = tenant and a.correlation_id = orphan.correlation_id and a.id = orphan.id;
  return coalesce(cardinality(old), 0);
end $$;
revoke execute on function holdfast.forget_commands from public;
grant execute on function holdfast.forget_commands to holdfast_app;
