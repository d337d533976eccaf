-- Claims the runs that answer these nodes, or without nodes the runs that are due, for the length of a lease.
-- A node that another program published has no run yet. It gets one if it is addressed to the agent and no other run is shown it.
-- A run is due if nothing before it in the queue of its conversation lives (holdfast.is_held), and it has no holder or its lease has expired.
-- Users take turns: the user with the fewest runs in progress in this process comes first, none gets more than `most_of_user`, and of one user the
-- run that has waited longest comes first.
-- Each claim increments the fencing token, under the conversation's lock, so that a write of the former holder is either done already or rejected.
-- A conversation that is locked is left for the next poll. To store a missing run, the lock is required: the lock timeout ends the wait, so that
-- others do not wait here.
-- A run stalls if its lease expires before its holder has stored a reply or the outcome of a call. A run that stalls ten times in a row fails.
drop function if exists holdfast.take_runs(uuid, text[], uuid[], uuid[], interval, text, int);
create or replace function holdfast.take_runs(
  tenant uuid, agents text[], nodes uuid[], fresh uuid[], lease interval, claimant text, most int, most_of_user int default null
) returns setof public.runs language plpgsql set lock_timeout = '2s' as $$
#variable_conflict use_column
declare
  asked record;
  due record;
  taken public.runs;
begin
  if nodes is not null then
    for asked in
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
      perform from public.conversation c where c.tenant_id = tenant and c.id = asked.root for update;
      if (select r.id is null from holdfast.run_answering(tenant, asked.root, asked.id, asked.seq, asked.agent_name) r) then
        perform holdfast.store_run(tenant, asked.fresh, asked.agent_name, asked.root, asked.id, asked.seq, asked.user_name);
      end if;
    end loop;
  end if;
  for due in
    select ranked.id, c.revision from (
      select r.id, r.root, r.run_at, r.number,
        coalesce(held.count, 0) + row_number() over (partition by r.user_name order by r.run_at, r.number) as turn
      from public.runs r left join (
        select busy.user_name, count(*) from public.runs busy
        where busy.tenant_id = tenant and busy.state = 'running' and busy.holder = claimant and busy.leased_until > holdfast.now()
        group by busy.user_name
      ) held on held.user_name is not distinct from r.user_name
      where r.tenant_id = tenant and r.agent = any(agents) and r.state in ('queued', 'running') and r.run_at <= holdfast.now()
        and (r.leased_until is null or r.leased_until <= holdfast.now())
        and (nodes is null or r.trigger = any(nodes))
        and not exists (
          select from public.runs former where former.tenant_id = tenant and former.root = r.root and former.number < r.number
            and former.finished_at is null)
        and not exists (
          select from public.turn_claim t where t.tenant_id = tenant and t.root = r.root and t.number < r.number
            and t.leased_until > holdfast.now())
    ) ranked join public.conversation c on c.tenant_id = tenant and c.id = ranked.root
    where most_of_user is null or ranked.turn <= most_of_user
    order by ranked.turn, ranked.run_at, ranked.number limit most for update of c skip locked
  loop
    update public.runs r
      set state = 'running', holder = claimant, leased_until = holdfast.now() + lease, token = r.token + 1,
        claims = r.claims + 1, started_at = coalesce(r.started_at, holdfast.now()), claimed_at = holdfast.now(), claimed_revision = due.revision,
        stalls = (r.state = 'running')::int + case when r.claimed_at is null or exists (
            select from public.run_step s where s.tenant_id = tenant and s.run_id = r.id and s.replied_at >= r.claimed_at
          ) or exists (
            select from public.tool_executions e where e.tenant_id = tenant and e.run_id = r.id and e.finished_at >= r.claimed_at
          ) then 0 else r.stalls end
      where r.tenant_id = tenant and r.id = due.id and r.state in ('queued', 'running')
        and (r.leased_until is null or r.leased_until <= holdfast.now())
      returning r.* into taken;
    if taken.stop is not null then  -- its former holder was asked to stop, and did not
      perform holdfast.end_run(tenant, taken.id, 'cancelled', null, null);
    elsif taken.stalls >= 10 then
      perform holdfast.end_run(tenant, taken.id, 'failed', null, jsonb_build_object(
        'code', 'limit_reached', 'what', 'the run was given up',
        'why', 'its process stopped responding ten times in a row',
        'next', 'Check the logs of the servers, then retry the run.', 'message',
        'the run was given up: its process stopped responding ten times in a row. '
        'Check the logs of the servers, then retry the run.'));
    elsif taken.id is not null then
      return next taken;
    end if;
    taken := null;
  end loop;
end $$;
revoke execute on function holdfast.take_runs from public;
grant execute on function holdfast.take_runs to holdfast_app;
