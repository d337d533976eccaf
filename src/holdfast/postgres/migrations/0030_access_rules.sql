-- The access rules of a tenant, as people write them: who may call which tool (skills/rules/grammar.py).
create table access_rules (
  tenant_id uuid not null references tenant (id),
  version bigint not null,
  text text not null,
  updated_at timestamptz not null default holdfast.now(),
  updated_by text not null,
  primary key (tenant_id)
);
call holdfast.hold_to_tenant('access_rules');

-- What rules on trial would have decided otherwise: how many calls, when the last time, and the latest of them, without their arguments.
create table access_rule_trial (
  tenant_id uuid not null,
  rule text collate "C" not null,
  calls bigint not null,
  last_at timestamptz not null,
  examples jsonb not null,
  primary key (tenant_id, rule)
) with (fillfactor = 70);
call holdfast.hold_to_tenant('access_rule_trial');
