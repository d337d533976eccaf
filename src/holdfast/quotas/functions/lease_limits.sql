-- Leases tokens and slots of many limits to a process, and takes back those that it did not use, in one short transaction.
-- Buckets are locked in one order, so that two processes cannot wait for each other. Those that many callers share come last, so that they are locked
-- for the shortest time. A crash of the server may lose the last leases: the commit is not waited for, because a lost lease only lets a few more calls
-- pass.
-- Of tokens, a process gets what its waiting calls need, and else at most half of what there is, so that others get some, too. `retry_after` says
-- in how many seconds there is the next token, if it has got less than it wants and nothing is left.
-- The time is that of the transaction's start, which may be earlier than that of a transaction that had the lock before: then nothing has grown.
-- A bucket or a lease from a time long after now is from before the clock was set back.
create or replace function holdfast.lease_limits(tenant uuid, process uuid, lease interval, asks jsonb)
returns table (place int, granted double precision, retry_after double precision) language plpgsql as $$
declare
  skew constant interval := interval '10 s';
  at timestamptz := holdfast.now();
  latest timestamptz := at + skew;
  longest constant double precision := 10 * 365 * 86400.0;
  ask record;
  available double precision;
  taken double precision;
begin
  perform set_config('synchronous_commit', 'off', true);
  for ask in
    select * from jsonb_to_recordset(asks) as a (
      place int, limit_id uuid, subject text, shared boolean, slots boolean, rate double precision, capacity double precision,
      wanted double precision, needed double precision, returned double precision)
    order by a.shared, a.limit_id, a.subject collate "C"
  loop
    place := ask.place;
    insert into public.limit_bucket as b (tenant_id, limit_id, subject, level, updated_at, full_by)
      values (tenant, ask.limit_id, ask.subject, ask.capacity, at, date_trunc('hour', at
        + make_interval(secs => least(longest, coalesce(ask.capacity / nullif(ask.rate, 0), 0))), 'UTC') + interval '1 h')
      on conflict (tenant_id, limit_id, subject) do update set
        level = least(ask.capacity, b.level + ask.returned + ask.rate * greatest(0, extract(epoch from at - b.updated_at))),
        updated_at = case when b.updated_at > latest then at else greatest(at, b.updated_at) end,
        full_by = excluded.full_by
      returning b.level into available;
    if ask.slots then
      select coalesce(sum(s.slots), 0) into taken from public.limit_slots s
        where s.tenant_id = tenant and s.limit_id = ask.limit_id and s.subject = ask.subject and s.holder <> process
          and s.leased_until > at and s.leased_until <= at + lease + skew;
      granted := greatest(0, least(ask.wanted, ask.capacity - taken));
      retry_after := case when granted < ask.wanted then 1 else 0 end;
      if greatest(granted, ask.needed) = 0 then
        delete from public.limit_slots s
          where s.tenant_id = tenant and s.limit_id = ask.limit_id and s.subject = ask.subject and s.holder = process;
      else
        insert into public.limit_slots as s (tenant_id, limit_id, subject, holder, slots, leased_until)
          values (tenant, ask.limit_id, ask.subject, process, greatest(granted, ask.needed), at + lease)
          on conflict (tenant_id, limit_id, subject, holder) do update set slots = excluded.slots, leased_until = excluded.leased_until;
      end if;
    else
      granted := floor(least(ask.wanted, greatest(ask.needed, available / 2), available));
      retry_after := case when granted < ask.wanted and available - granted < 1 then (1 - (available - granted)) / ask.rate else 0 end;
      if granted > 0 then
        update public.limit_bucket b set level = available - granted
          where b.tenant_id = tenant and b.limit_id = ask.limit_id and b.subject = ask.subject;
      end if;
    end if;
    return next;
  end loop;
end $$;
revoke execute on function holdfast.lease_limits from public;
grant execute on function holdfast.lease_limits to holdfast_app;
