-- Stores another attempt at a run that failed or was cancelled, unless there is a newer attempt, or all of its messages were deleted.
create or replace function holdfast.retry_run(tenant uuid, run uuid, wanted uuid, out outcome text, out id uuid) language plpgsql as $$
#variable_conflict use_column
declare
  former public.runs;
  own bigint;
begin
  select r.* from public.runs r where r.tenant_id = tenant and r.id = run into former;
  if not found then
    outcome := 'missing';
    return;
  end if;
  perform from public.conversation c where c.tenant_id = tenant and c.id = former.root for update;
  if former.state not in ('failed', 'cancelled') or exists (
    select from public.runs r where r.tenant_id = tenant and r.trigger = former.trigger and r.agent = former.agent
      and r.attempt > former.attempt) then
    outcome := 'refused';
    return;
  end if;
  if not exists (
    select from public.node n where n.tenant_id = tenant and n.root = former.root and n.seq = any(former.trigger_seq || former.merged)
      and not n.deleted) then
    outcome := 'deleted';
    return;
  end if;
  update public.conversation c set last_run = c.last_run + 1 where c.tenant_id = tenant and c.id = former.root
    returning c.last_run into own;
  insert into public.runs (tenant_id, id, agent, root, number, trigger, trigger_seq, attempt, retry_of, user_name, merged)
    values (tenant, wanted, former.agent, former.root, own, former.trigger, former.trigger_seq, former.attempt + 1, run,
      former.user_name, former.merged);
  retry_run.id := wanted;
  outcome := 'stored';
end $$;
revoke execute on function holdfast.retry_run from public;
grant execute on function holdfast.retry_run to holdfast_app;
