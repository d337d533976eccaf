"""Plans of the statements of quotas, and enough rows that a missing index shows."""

from datetime import timedelta

from tests.rules.plan import ID, Cold, Plan

OF_A_TENANT: dict[str, Plan | Cold] = {
    "quotas/sql/bucket_usage.sql": Plan("limit_bucket_pkey", ([ID], [1.0], [1.0], 100)),
    "quotas/sql/budget_usage.sql": Plan("budget_pkey", ([ID], ["month"], [1.0], 100)),
    "quotas/sql/changed_limits.sql": Plan("usage_limit_by_revision", (197, 1000)),
    "quotas/sql/model_usage.sql": Plan("model_usage_pkey", (30, 100)),
    "quotas/sql/release_spend.sql": Plan("budget_reservation_pkey", (ID, [ID], ["user ann"])),
    "quotas/sql/slot_usage.sql": Plan("limit_slots_by_lease", ([ID], 100)),
}

OF_THE_SYSTEM: dict[str, Plan | Cold] = {
    "quotas/sql/tenants_to_sweep.sql": Plan("limit_slots_by_lease", (timedelta(days=400),), whole=("tenant",)),
}

ROWS = """
insert into usage_limit (tenant_id, id, by_operator, rule, revision, update_user)
  select id, gen_random_uuid(), false, case when n % 9 > 0 then 'tenant: 1 requests per day' end, n, 'boss'
  from busy, generate_series(1, 200) n;
insert into limit_bucket (tenant_id, limit_id, subject, level, updated_at, full_by)
  select id, md5(n % 5 || '')::uuid, 'user ' || n, 1, holdfast.now(), holdfast.now()
  from busy, generate_series(1, 200) n;
insert into limit_slots (tenant_id, limit_id, subject, holder, slots, leased_until)
  select id, md5(n % 5 || '')::uuid, 'user ' || n, id, 1, holdfast.now() + interval '10 s'
  from busy, generate_series(1, 200) n;
insert into budget (tenant_id, limit_id, subject, starts_at, ends_at)
  select id, md5(n % 5 || '')::uuid, 'user ' || n % 40, date_trunc('month', holdfast.now()) - n * interval '1 month',
    date_trunc('month', holdfast.now()) - (n - 1) * interval '1 month'
  from busy, generate_series(0, 199) n;
insert into budget_reservation (tenant_id, limit_id, subject, starts_at, id, estimate, leased_until)
  select tenant_id, limit_id, subject, starts_at, tenant_id, 1, holdfast.now() + interval '10 m' from budget;
insert into model_usage (tenant_id, day, user_name, agent, model, calls, input_tokens, output_tokens, cost)
  select id, current_date - n % 300, 'user ' || n % 7, 'support', 'model', 1, 1, 1, 1
  from busy, generate_series(1, 2000) n on conflict do nothing;
"""
