-- Reserves what a model call may spend in all its budgets, or in none. A call may begin as long as a budget is not used up, so that all of it can be
-- used: the last call may go beyond it by its own estimate. Reservations of calls in progress, and of those that died, count as spent.
-- `spent`: only the next window helps. `held`: calls in progress may yet give back what they do not use.
-- Budgets are locked in the order of their keys, so that two calls cannot wait for each other. Windows are those of the calendar, in UTC.
create or replace function holdfast.reserve_spend(tenant uuid, reservation uuid, lease interval, asks jsonb)
returns table (place int, outcome text, used double precision, starts_at timestamptz, resets_in double precision) language plpgsql as $$
#variable_conflict use_column
declare
  at timestamptz := holdfast.now();
  ask record;
  spent double precision;
  held double precision;
  lapsed double precision;
  refused boolean := false;
begin
  for ask in
    select a.*, date_trunc(a.window_unit, at, 'UTC') as starts_at,
      (date_trunc(a.window_unit, at at time zone 'UTC') + ('1 ' || a.window_unit)::interval) at time zone 'UTC' as ends_at
    from jsonb_to_recordset(asks) as a (
      place int, limit_id uuid, subject text, window_unit text, amount double precision, estimate double precision)
    order by a.limit_id, a.subject collate "C"
  loop
    insert into public.budget as b (tenant_id, limit_id, subject, starts_at, ends_at)
      values (tenant, ask.limit_id, ask.subject, ask.starts_at, ask.ends_at)
      on conflict (tenant_id, limit_id, subject, starts_at) do update set used = b.used returning b.used into spent;
    select coalesce(sum(r.estimate) filter (where r.leased_until > at), 0), coalesce(sum(r.estimate) filter (where r.leased_until <= at), 0)
      into held, lapsed from public.budget_reservation r
      where r.tenant_id = tenant and r.limit_id = ask.limit_id and r.subject = ask.subject and r.starts_at = ask.starts_at;
    place := ask.place;
    used := spent + lapsed;
    outcome := case when used >= ask.amount then 'spent' when used + held >= ask.amount then 'held' else 'free' end;
    starts_at := ask.starts_at;
    resets_in := extract(epoch from ask.ends_at - at);
    refused := refused or outcome <> 'free';
    return next;
  end loop;
  if not refused then
    insert into public.budget_reservation (tenant_id, limit_id, subject, starts_at, id, estimate, leased_until)
      select tenant, a.limit_id, a.subject, date_trunc(a.window_unit, at, 'UTC'), reservation, a.estimate, at + lease
      from jsonb_to_recordset(asks) as a (limit_id uuid, subject text, window_unit text, estimate double precision)
      on conflict do nothing;
  end if;
end $$;
revoke execute on function holdfast.reserve_spend from public;
grant execute on function holdfast.reserve_spend to holdfast_app;
