-- Moves open entries of a tenant into its chain, oldest first, at most `most`, and returns how many. It has the rights of its owner, because the
-- application cannot change the chain otherwise. The hash of an entry covers the hash before it, its numbers, times and text; audit/chain.py
-- computes the same to verify it. The hashes are made here, so that no row travels to be sealed.
create or replace function holdfast.seal_audit(tenant uuid, most int) returns int
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  origin constant bytea := sha256(uuid_send(tenant));
  number bigint;
  head bytea;
  moment timestamptz;
  added bigint;
  each record;
  ids uuid[] := '{}';
  before bytea[] := '{}';
  hashes bytea[] := '{}';
begin
  if tenant is distinct from current_setting('holdfast.tenant')::uuid then
    raise insufficient_privilege using message = 'a tenant can only seal its own audit';
  end if;
  if not exists (select from public.audit_open o where o.tenant_id = tenant) then
    return 0;
  end if;
  insert into public.audit_chain (tenant_id, hash, checkpoint_hash) values (tenant, origin, origin) on conflict (tenant_id) do nothing;
  -- Of two processes that seal at once, one waits here, and then finds what the other has left.
  select c.seq, c.hash, greatest(holdfast.now(), c.sealed_at) into number, head, moment
  from public.audit_chain c where c.tenant_id = tenant for update;
  for each in select o.id, o.at, o.entry from public.audit_open o where o.tenant_id = tenant order by o.id limit most loop
    number := number + 1;
    ids := ids || each.id;
    before := before || head;
    head := sha256(
      head || int8send(number) || uuid_send(each.id) || int8send((extract(epoch from each.at) * 1000000)::bigint)
      || int8send((extract(epoch from moment) * 1000000)::bigint) || convert_to(each.entry::text, 'UTF8'));
    hashes := hashes || head;
  end loop;
  if cardinality(ids) = 0 then
    return 0;
  end if;
  number := number - cardinality(ids);
  with sealed as (
    insert into public.audit (tenant_id, seq, sealed_at, id, at, entry, previous, hash)
    select tenant, number + s.place, moment, o.id, o.at, o.entry, s.previous, s.hash
    from unnest(ids, before, hashes) with ordinality as s (id, previous, hash, place)
    join public.audit_open o on o.tenant_id = tenant and o.id = s.id
    returning seq
  ), persons as (
    insert into public.audit_person (tenant_id, seq, sealed_at, salt, person)
    select tenant, number + s.place, moment, o.salt, o.person
    from unnest(ids) with ordinality as s (id, place) join public.audit_open o on o.tenant_id = tenant and o.id = s.id
    where o.person is not null
    returning seq
  )
  select count(*) into added from sealed;
  delete from public.audit_open o where o.tenant_id = tenant and o.id = any(ids);
  update public.audit_chain c set seq = number + cardinality(ids), hash = head, sealed_at = moment where c.tenant_id = tenant;
  return added;
end $$;
revoke execute on function holdfast.seal_audit from public;
grant execute on function holdfast.seal_audit to holdfast_app;
