-- Adds a key that signs who calls. It signs at once if there is no other, else after `lead`: back ends that keep the published keys know it by then.
-- `first`: only if there is no other key. `at_once`: it replaces all others now, which may have leaked. Keys whose successors have signed for longer than
-- `kept` are removed: nothing that they signed is valid any more. The lock orders processes that add a key at the same time.
create or replace function holdfast.add_identity_key(
  kid text, public_key jsonb, sealed bytea, seal_id text, by text, first boolean, at_once boolean, lead interval, kept interval
) returns boolean language plpgsql as $$
#variable_conflict use_column
begin
  lock table public.identity_key in share row exclusive mode;
  if first and exists (select from public.identity_key) then
    return false;
  end if;
  delete from public.identity_key k where at_once or exists (
    select from public.identity_key successor where successor.active_from > k.active_from and successor.active_from <= holdfast.now() - kept);
  insert into public.identity_key (kid, public_key, sealed, seal_id, active_from, created_by)
    select add_identity_key.kid, add_identity_key.public_key, add_identity_key.sealed, add_identity_key.seal_id,
      holdfast.now() + case when exists (select from public.identity_key) then lead else interval '0' end, by;
  return true;
end $$;
revoke execute on function holdfast.add_identity_key from public;
grant execute on function holdfast.add_identity_key to holdfast_system;
