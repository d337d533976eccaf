-- Replaces a model call's reservations by what it really spent, and returns the budgets of which most is spent since now, so that it is said once.
-- A reservation that is no longer there has become spending when its lease ended: only the difference is added. A window that was swept is over.
create or replace function holdfast.settle_spend(tenant uuid, reservation uuid, spends jsonb)
returns table (place int, used double precision) language plpgsql as $$
#variable_conflict use_column
declare
  spend record;
  warned boolean;
begin
  for spend in
    select * from jsonb_to_recordset(spends) as s (
      place int, limit_id uuid, subject text, starts_at timestamptz, estimate double precision, actual double precision,
      warn_from double precision)
    order by s.limit_id, s.subject collate "C"
  loop
    select b.warned_at is not null into warned from public.budget b
      where b.tenant_id = tenant and b.limit_id = spend.limit_id and b.subject = spend.subject and b.starts_at = spend.starts_at
      for update;
    continue when not found;
    delete from public.budget_reservation r
      where r.tenant_id = tenant and r.limit_id = spend.limit_id and r.subject = spend.subject and r.starts_at = spend.starts_at
        and r.id = reservation;
    update public.budget b
      set used = greatest(0, b.used + spend.actual - case when found then 0 else spend.estimate end)
      where b.tenant_id = tenant and b.limit_id = spend.limit_id and b.subject = spend.subject and b.starts_at = spend.starts_at
      returning b.used into used;
    if used >= spend.warn_from and not warned then
      update public.budget b set warned_at = holdfast.now()
        where b.tenant_id = tenant and b.limit_id = spend.limit_id and b.subject = spend.subject and b.starts_at = spend.starts_at;
      place := spend.place;
      return next;
    end if;
  end loop;
end $$;
revoke execute on function holdfast.settle_spend from public;
grant execute on function holdfast.settle_spend to holdfast_app;
