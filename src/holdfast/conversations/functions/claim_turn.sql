-- Claims a conversation for a turn, or a place in its queue. Claims with an expired lease are deleted, so a crashed turn frees the
-- conversation.
-- `policy`: reject, enqueue, or interrupt (asks whoever holds the conversation to stop, and waits).
-- `outcome`: held, waiting, busy (`holder` has it; a claim has a lease `until` then), missing.
create or replace function holdfast.claim_turn(
  tenant uuid, conversation uuid, claimant text, lease interval, policy text,
  out outcome text, out number bigint, out holder text, out until timestamptz
) language plpgsql as $$
#variable_conflict use_column
declare
  way record;
begin
  perform from public.conversation c where c.tenant_id = tenant and c.id = conversation for update;
  if not found then
    outcome := 'missing';
    return;
  end if;
  delete from public.turn_claim t where t.tenant_id = tenant and t.root = conversation and t.leased_until <= holdfast.now();
  way := holdfast.make_way(tenant, conversation, policy);
  if way.busy then
    outcome := 'busy';
    claim_turn.holder := way.holder;
    claim_turn.until := way.until;
    return;
  end if;
  update public.conversation c set last_run = c.last_run + 1
    where c.tenant_id = tenant and c.id = conversation returning c.last_run into claim_turn.number;
  outcome := case when holdfast.is_held(tenant, conversation) then 'waiting' else 'held' end;
  insert into public.turn_claim (tenant_id, root, number, holder, leased_until)
    values (tenant, conversation, claim_turn.number, claimant, holdfast.now() + lease);
end $$;
revoke execute on function holdfast.claim_turn from public;
grant execute on function holdfast.claim_turn to holdfast_app;

-- Whether a turn holds the conversation: it lives, and nothing before it in the queue does.
create or replace function holdfast.holds_turn(tenant uuid, conversation uuid, turn bigint) returns boolean
language plpgsql as $$
begin
  return exists (
    select from public.turn_claim t
    where t.tenant_id = tenant and t.root = conversation and t.number = turn and t.leased_until > holdfast.now()
  ) and not holdfast.is_held(tenant, conversation, turn);
end $$;
revoke execute on function holdfast.holds_turn from public;
grant execute on function holdfast.holds_turn to holdfast_app;

-- Renews a claim, unless its lease has expired: then the results are null. It holds the conversation if nothing before it lives.
-- Expired claims before it are deleted under the conversation's lock, so that their appends are rejected whatever the clock says.
create or replace function holdfast.renew_turn(tenant uuid, conversation uuid, turn bigint, lease interval, out held boolean, out interrupted boolean)
language plpgsql as $$
#variable_conflict use_column
begin
  update public.turn_claim t set leased_until = holdfast.now() + lease
    where t.tenant_id = tenant and t.root = conversation and t.number = turn and t.leased_until > holdfast.now()
    returning t.interrupted into renew_turn.interrupted;
  if not found then
    return;
  end if;
  held := holdfast.holds_turn(tenant, conversation, turn);
  if held and exists (
    select from public.turn_claim t where t.tenant_id = tenant and t.root = conversation and t.number < turn) then
    perform from public.conversation c where c.tenant_id = tenant and c.id = conversation for update;
    delete from public.turn_claim t
      where t.tenant_id = tenant and t.root = conversation and t.number < turn and t.leased_until <= holdfast.now();
  end if;
end $$;
revoke execute on function holdfast.renew_turn from public;
grant execute on function holdfast.renew_turn to holdfast_app;
