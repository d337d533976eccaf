-- Gives a process the runs that answer these nodes, and those that are due where none are named: each for the length of a lease.
-- A node that nobody has stored a run for yet, because a stranger published it, gets one, if it is said to the agent. A run is due when it is the first of its
-- conversation that has not ended, and nobody has it, or whoever had it was not heard of for a lease. Each claim has the next token:
-- under the conversation's lock, so that what the former holder still writes is either there already or refused.
create or replace function holdfast.take_runs(
  tenant uuid, agents text[], nodes uuid[], fresh uuid[], lease interval, claimant text, most int
) returns setof public.runs language plpgsql as $$
#variable_conflict use_column
declare
  found record;
  taken public.runs;
begin
  if nodes is not null then
    for found in
      select n.id, n.root, n.seq, c.agent_name, c.user_name, given.fresh
      from unnest(nodes, take_runs.fresh) as given (node, fresh)
      join public.node n on n.tenant_id = tenant and n.id = given.node and n.id = any(nodes)
      join public.conversation c on c.tenant_id = tenant and c.id = n.root
      where c.agent_name = any(agents) and n.context_type = 'text' and not n.deleted
        and not (n.context_name = 'agent' and n.context_value in (c.agent_name, 'tool'))
        and not exists (
          select from public.runs r where r.tenant_id = tenant and r.trigger = n.id and r.agent = c.agent_name)
      order by n.root, n.seq
    loop
      perform from public.conversation c where c.tenant_id = tenant and c.id = found.root for update;
      if not exists (select from public.runs r where r.tenant_id = tenant and r.trigger = found.id and r.agent = found.agent_name) then
        perform holdfast.store_run(tenant, found.fresh, found.agent_name, found.root, found.id, found.seq, found.user_name);
      end if;
    end loop;
  end if;
  for found in
    select r.id, r.root from public.runs r
    where r.tenant_id = tenant and r.agent = any(agents) and r.state in ('queued', 'running') and r.run_at <= holdfast.now()
      and (r.leased_until is null or r.leased_until <= holdfast.now())
      and (nodes is null or r.trigger = any(nodes))
      and not exists (
        select from public.runs former where former.tenant_id = tenant and former.root = r.root and former.number < r.number
          and former.finished_at is null)
    order by r.root, r.number limit most
  loop
    perform from public.conversation c where c.tenant_id = tenant and c.id = found.root for update;
    update public.runs r
      set state = 'running', holder = claimant, leased_until = holdfast.now() + lease, token = r.token + 1,
        claims = r.claims + 1, started_at = coalesce(r.started_at, holdfast.now())
      where r.tenant_id = tenant and r.id = found.id and r.state in ('queued', 'running')
        and (r.leased_until is null or r.leased_until <= holdfast.now())
      returning r.* into taken;
    if taken.stop is not null then  -- whoever had it was told to stop, and did not come to it
      perform holdfast.end_run(tenant, taken.id, 'cancelled', null, null);
    elsif taken.id is not null then
      return next taken;
    end if;
    taken := null;
  end loop;
end $$;
revoke execute on function holdfast.take_runs from public;
grant execute on function holdfast.take_runs to holdfast_app;
