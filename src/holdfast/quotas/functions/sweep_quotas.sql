-- Settles reservations whose calls have died, as spent, and deletes what no longer counts: full buckets, slots whose lease has ended, windows that
-- are over, old usage, and removed limits that every process has seen. At most `most` rows of each.
create or replace function holdfast.sweep_quotas(tenant uuid, keep interval, most int) returns int language plpgsql as $$
declare
  at timestamptz := holdfast.now();
  lapsed record;
  done int := 0;
  swept int;
begin
  for lapsed in
    select distinct r.limit_id, r.subject collate "C" as subject, r.starts_at from (
      select * from public.budget_reservation d where d.tenant_id = tenant and d.leased_until <= at order by d.leased_until limit most
    ) r
    order by r.limit_id, r.subject collate "C", r.starts_at
  loop
    -- The budget is locked first, and budgets in the order of their keys, as everywhere.
    perform from public.budget b
      where b.tenant_id = tenant and b.limit_id = lapsed.limit_id and b.subject = lapsed.subject and b.starts_at = lapsed.starts_at for update;
    with settled as (
      delete from public.budget_reservation r
      where r.tenant_id = tenant and r.limit_id = lapsed.limit_id and r.subject = lapsed.subject and r.starts_at = lapsed.starts_at
        and r.leased_until <= at
      returning r.estimate
    )
    update public.budget b set used = b.used + (select coalesce(sum(s.estimate), 0) from settled s)
      where b.tenant_id = tenant and b.limit_id = lapsed.limit_id and b.subject = lapsed.subject and b.starts_at = lapsed.starts_at;
    done := done + 1;
  end loop;
  delete from public.limit_slots s using (
      select limit_id, subject, holder from public.limit_slots
      where tenant_id = tenant and leased_until < at - interval '1 h' limit most for update skip locked
    ) old
    where s.tenant_id = tenant and s.limit_id = old.limit_id and s.subject = old.subject and s.holder = old.holder;
  get diagnostics swept = row_count;
  done := done + swept;
  delete from public.limit_bucket b using (
      select limit_id, subject from public.limit_bucket
      where tenant_id = tenant and full_by <= at limit most for update skip locked
    ) old
    where b.tenant_id = tenant and b.limit_id = old.limit_id and b.subject = old.subject;
  get diagnostics swept = row_count;
  done := done + swept;
  delete from public.budget b using (
      select limit_id, subject, starts_at from public.budget
      where tenant_id = tenant and ends_at < at - interval '1 d' limit most for update skip locked
    ) old
    where b.tenant_id = tenant and b.limit_id = old.limit_id and b.subject = old.subject and b.starts_at = old.starts_at;
  get diagnostics swept = row_count;
  done := done + swept;
  delete from public.usage_limit l using (
      select id from public.usage_limit
      where tenant_id = tenant and rule is null and update_ts < at - interval '1 d' limit most for update skip locked
    ) old
    where l.tenant_id = tenant and l.id = old.id;
  get diagnostics swept = row_count;
  done := done + swept;
  delete from public.model_usage u using (
      select day, user_name, agent, model from public.model_usage
      where tenant_id = tenant and day < ((at - keep) at time zone 'UTC')::date limit most for update skip locked
    ) old
    where u.tenant_id = tenant and u.day = old.day and u.user_name = old.user_name and u.agent = old.agent and u.model = old.model;
  get diagnostics swept = row_count;
  return done + swept;
end $$;
revoke execute on function holdfast.sweep_quotas from public;
grant execute on function holdfast.sweep_quotas to holdfast_app;
