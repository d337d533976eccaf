-- Appends a message to an agent, publishes it on the agent's topic, and stores the run that will answer it: all or nothing.
-- `busy` says what happens if a run or a claim holds the conversation: reject (nothing is stored), interrupt (it is asked to stop), enqueue,
-- merge (the message joins the last run, if that accepts merged messages of this user and nobody has started it; otherwise it gets such a run).
-- `outcome`: sent; repeated (the key exists: `id` and `run` are those of the first message); busy (`run` is the unfinished one, or `holder` has a claim); missing.
-- `claimant`: the process that claims the run at once for a lease, if nothing else holds the conversation. `claimed` says whether it did.
drop function if exists holdfast.send_message(uuid, uuid, uuid, text, text, text, text, jsonb, text, text, uuid, text, text, text, interval);
create or replace function holdfast.send_message(
  tenant uuid, conversation uuid, node uuid, type text, name text, value text, content text, payload jsonb, key text,
  agent text, wanted uuid, person text, busy text, claimant text default null, lease interval default null,
  out outcome text, out id uuid, out seq bigint, out revision bigint, out at timestamptz, out topic text, out run uuid, out number bigint,
  out claimed boolean, out holder text
) language plpgsql as $$
#variable_conflict use_column
declare
  way record;
  appended record;
  stored record;
  last public.runs;
begin
  if send_message.key is not null or busy <> 'enqueue' then  -- these checks need the conversation's lock
    perform from public.conversation c where c.tenant_id = tenant and c.id = conversation for update;
    if not found then
      outcome := 'missing';
      return;
    end if;
  end if;
  if send_message.key is not null then
    select n.id, n.seq, n.revision, n.created_at from public.node n
      where n.tenant_id = tenant and n.root = conversation and n.key = send_message.key
      into send_message.id, send_message.seq, send_message.revision, send_message.at;
    if found then
      select r.id, r.number from holdfast.run_answering(tenant, conversation, send_message.id, send_message.seq, send_message.agent) r
        into send_message.run, send_message.number;
      if send_message.run is null then  -- the node was appended directly, and its agent has not read its record yet
        send_message.run := wanted;
        stored := holdfast.store_run(tenant, wanted, send_message.agent, conversation, send_message.id, send_message.seq, person);
        send_message.number := stored.number;
      end if;
      outcome := 'repeated';
      return;
    end if;
  end if;
  if busy in ('reject', 'interrupt') then
    way := holdfast.make_way(tenant, conversation, busy);
    if way.busy then
      send_message.run := way.run;
      send_message.holder := way.holder;
      outcome := 'busy';
      return;
    end if;
  elsif busy = 'merge' then
    select r.* from public.runs r where r.tenant_id = tenant and r.root = conversation and r.finished_at is null
      order by r.number desc limit 1 into last;
  end if;
  appended := holdfast.append(
    tenant, conversation, node, null, type, send_message.name, send_message.value, send_message.content, send_message.payload,
    null, null, send_message.key, null, null, null);
  if appended.outcome <> 'appended' then
    outcome := appended.outcome;
    return;
  end if;
  send_message.id := appended.id;
  send_message.seq := appended.seq;
  send_message.revision := appended.revision;
  send_message.at := appended.at;
  send_message.topic := appended.topic;
  outcome := 'sent';
  if last.claims = 0 and last.attempt = 1 and cardinality(last.merged) < 50 and last.agent = send_message.agent
    and last.user_name is not distinct from person then
    update public.runs r set merged = r.merged || appended.seq where r.tenant_id = tenant and r.id = last.id;
    send_message.run := last.id;
    send_message.number := last.number;
    send_message.claimed := false;
    return;
  end if;
  send_message.run := wanted;
  stored := holdfast.store_run(
    tenant, wanted, send_message.agent, conversation, appended.id, appended.seq, person, claimant, lease, busy = 'merge');
  send_message.number := stored.number;
  send_message.claimed := stored.claimed;
end $$;
revoke execute on function holdfast.send_message from public;
grant execute on function holdfast.send_message to holdfast_app;

-- Stores the run that answers a node, after the other runs of its conversation, whose row is locked. Returns its number, and whether the claimant has
-- it.
-- `merging`: messages can join the run until somebody starts it.
drop function if exists holdfast.store_run(uuid, uuid, text, uuid, uuid, bigint, text);
drop function if exists holdfast.store_run(uuid, uuid, text, uuid, uuid, bigint, text, text, interval);
create or replace function holdfast.store_run(
  tenant uuid, run uuid, agent text, conversation uuid, node uuid, seq bigint, person text,
  claimant text default null, lease interval default null, merging boolean default false, out number bigint, out claimed boolean
) language plpgsql as $$
#variable_conflict use_column
begin
  update public.conversation c set last_run = c.last_run + 1 where c.tenant_id = tenant and c.id = conversation
    returning c.last_run into store_run.number;
  if claimant is null then
    insert into public.runs (tenant_id, id, agent, root, number, trigger, trigger_seq, user_name, merged)
      values (tenant, run, store_run.agent, conversation, store_run.number, node, store_run.seq, person,
        case when merging then '{}'::bigint[] end);
    return;
  end if;
  store_run.claimed := not holdfast.is_held(tenant, conversation);
  insert into public.runs (
      tenant_id, id, agent, root, number, trigger, trigger_seq, user_name, state, holder, leased_until, token, claims, started_at, claimed_at,
      merged)
    select tenant, run, store_run.agent, conversation, store_run.number, node, store_run.seq, person,
      case when first then 'running' else 'queued' end, case when first then claimant end, case when first then holdfast.now() + lease end,
      first::int, first::int, case when first then holdfast.now() end, case when first then holdfast.now() end,
      case when merging then '{}'::bigint[] end
    from (values (store_run.claimed)) as given (first);
end $$;
revoke execute on function holdfast.store_run from public;
grant execute on function holdfast.store_run to holdfast_app;

-- Returns the last attempt at the run that answers a message: the message's own run; or the run that it was merged into; or the first run of a later
-- message, if that was stored before anybody saw that this message has none. That run is shown both messages, and a second run would answer this one
-- again. All null: there is none.
create or replace function holdfast.run_answering(tenant uuid, conversation uuid, node uuid, seq bigint, agent text)
returns public.runs language plpgsql as $$
#variable_conflict use_column
declare
  found_run public.runs;
begin
  select r.* from public.runs r where r.tenant_id = tenant and r.trigger = node and r.agent = run_answering.agent
    order by r.attempt desc limit 1 into found_run;
  if found then
    return found_run;
  end if;
  select r.* from public.runs r
    where r.tenant_id = tenant and r.root = conversation and r.merged is not null and r.trigger_seq < run_answering.seq
    order by r.trigger_seq desc, r.attempt desc limit 1 into found_run;
  if found and run_answering.seq = any(found_run.merged) then
    return found_run;
  end if;
  select newest.* from (
      select r.* from public.runs r where r.tenant_id = tenant and r.root = conversation order by r.number desc limit 50
    ) newest
    where greatest(newest.trigger_seq, newest.merged[cardinality(newest.merged)]) > run_answering.seq and newest.attempt = 1
    order by newest.number limit 1 into found_run;
  return found_run;
end $$;
revoke execute on function holdfast.run_answering from public;
grant execute on function holdfast.run_answering to holdfast_app;
