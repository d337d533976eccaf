-- Returns tenants with limits or usage to sweep, by an index lookup per table and tenant.
select t.id from tenant t, lateral (
  (select from budget_reservation r where r.tenant_id = t.id and r.leased_until <= holdfast.now() limit 1)
  union all
  (select from limit_slots s where s.tenant_id = t.id and s.leased_until < holdfast.now() - interval '1 h' limit 1)
  union all
  (select from limit_bucket b where b.tenant_id = t.id and b.full_by <= holdfast.now() limit 1)
  union all
  (select from budget b where b.tenant_id = t.id and b.ends_at < holdfast.now() - interval '1 d' limit 1)
  union all
  (select from usage_limit l where l.tenant_id = t.id and l.rule is null and l.update_ts < holdfast.now() - interval '1 d' limit 1)
  union all
  (select from model_usage u where u.tenant_id = t.id and u.day < ((holdfast.now() - $1::interval) at time zone 'UTC')::date limit 1)
  limit 1
) has_work
