-- Claims of turns and runs of agents are one queue of a conversation: `conversation.last_run` numbers both. Those that live are a claim until its lease
-- expires, and a run until it has ended. The one with the lowest number holds the conversation, and the others wait. (holdfast.take_runs asks the same
-- of many conversations at once.)

-- Returns whether a living claim or run is in the queue, or before a number in it.
create or replace function holdfast.is_held(tenant uuid, conversation uuid, before bigint default null) returns boolean language plpgsql as $$
#variable_conflict use_column
begin
  return exists (
    select from public.runs r where r.tenant_id = tenant and r.root = conversation and r.finished_at is null
      and (before is null or r.number < before)
  ) or exists (
    select from public.turn_claim t where t.tenant_id = tenant and t.root = conversation and t.leased_until > holdfast.now()
      and (before is null or t.number < before));
end $$;
revoke execute on function holdfast.is_held from public;
grant execute on function holdfast.is_held to holdfast_app;

-- Applies a policy to the queue of a conversation whose row is locked. `reject`: `busy` says whether something lives in the queue, and the other
-- results what comes first: a run (`run`) or a claim (`holder` and `until`). `interrupt`: all runs and the first claim are asked to stop.
create or replace function holdfast.make_way(
  tenant uuid, conversation uuid, policy text, out busy boolean, out run uuid, out holder text, out until timestamptz
) language plpgsql as $$
#variable_conflict use_column
declare
  unfinished uuid;
begin
  busy := false;
  if policy = 'reject' then
    select first.run, first.holder, first.until from (
        select r.number, r.id as run, 'the agent ' || r.agent as holder, null::timestamptz as until
        from public.runs r where r.tenant_id = tenant and r.root = conversation and r.finished_at is null
        union all
        select t.number, null, t.holder, t.leased_until
        from public.turn_claim t where t.tenant_id = tenant and t.root = conversation and t.leased_until > holdfast.now()
      ) first
      order by first.number limit 1 into make_way.run, make_way.holder, make_way.until;
    busy := found;
  elsif policy = 'interrupt' then
    foreach unfinished in array array(
      select r.id from public.runs r where r.tenant_id = tenant and r.root = conversation and r.finished_at is null order by r.number
    ) loop
      perform holdfast.stop_run(tenant, unfinished, 'interrupt');
    end loop;
    update public.turn_claim t set interrupted = true
      where t.tenant_id = tenant and t.root = conversation and t.number = (
        select min(first.number) from public.turn_claim first
        where first.tenant_id = tenant and first.root = conversation and first.leased_until > holdfast.now());
  end if;
end $$;
revoke execute on function holdfast.make_way from public;
grant execute on function holdfast.make_way to holdfast_app;
