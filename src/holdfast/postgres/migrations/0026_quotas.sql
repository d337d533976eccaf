-- Limits of a tenant that were set at run time: by its admins, or by the operator for it. `rule` is the limit as a text; null: it was removed.
-- `revision` grows with each change, so that a process reads only what has changed since its last look.
create table usage_limit (
  tenant_id uuid not null references tenant (id),
  id uuid not null,
  by_operator boolean not null,
  rule text,
  revision bigint not null,
  update_user text not null,
  update_ts timestamptz not null default holdfast.now(),
  primary key (tenant_id, id)
);
create unique index usage_limit_by_revision on usage_limit (tenant_id, revision);
create index usage_limit_removed on usage_limit (tenant_id, update_ts) where rule is null;
call holdfast.hold_to_tenant('usage_limit');
call holdfast.open_to_system('usage_limit', 'select');

-- The number of changes of a tenant's limits. It is locked until the commit, so that revisions are committed in order.
create table usage_limit_revision (
  tenant_id uuid primary key references tenant (id),
  revision bigint not null
);
call holdfast.hold_to_tenant('usage_limit_revision');

-- How much of a limit on requests a subject has left. `level` are tokens that no process has leased; it was that high at `updated_at`, and has
-- grown since. A limit on concurrent calls has a row here, too: it is locked while slots are leased. A missing row is a full bucket.
-- `full_by`: the hour from which it is full if it is not used any more. It changes at most once an hour, so that most updates touch no index.
create table limit_bucket (
  tenant_id uuid not null references tenant (id),
  limit_id uuid not null,
  subject text collate "C" not null,
  level double precision not null,
  updated_at timestamptz not null,
  full_by timestamptz not null,
  primary key (tenant_id, limit_id, subject)
) with (fillfactor = 50);
create index limit_bucket_full on limit_bucket (tenant_id, full_by);
call holdfast.hold_to_tenant('limit_bucket');
call holdfast.open_to_system('limit_bucket', 'select');

-- The slots for concurrent calls that a process holds. They are free again when their lease ends.
create table limit_slots (
  tenant_id uuid not null references tenant (id),
  limit_id uuid not null,
  subject text collate "C" not null,
  holder uuid not null,
  slots int not null,
  leased_until timestamptz not null,
  primary key (tenant_id, limit_id, subject, holder)
) with (fillfactor = 70);
create index limit_slots_by_lease on limit_slots (tenant_id, leased_until);
call holdfast.hold_to_tenant('limit_slots');
call holdfast.open_to_system('limit_slots', 'select');

-- What was spent of a budget in one window of the calendar. `warned_at`: when most of it was spent, which is said once.
create table budget (
  tenant_id uuid not null references tenant (id),
  limit_id uuid not null,
  subject text collate "C" not null,
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  used double precision not null default 0,
  warned_at timestamptz,
  primary key (tenant_id, limit_id, subject, starts_at)
) with (fillfactor = 50);
create index budget_by_end on budget (tenant_id, ends_at);
call holdfast.hold_to_tenant('budget');
call holdfast.open_to_system('budget', 'select');

-- What model calls in progress may spend. A reservation counts as spent until its call settles it. If the process dies, it stays spent.
create table budget_reservation (
  tenant_id uuid not null references tenant (id),
  limit_id uuid not null,
  subject text collate "C" not null,
  starts_at timestamptz not null,
  id uuid not null,
  estimate double precision not null,
  leased_until timestamptz not null,
  primary key (tenant_id, limit_id, subject, starts_at, id)
);
create index budget_reservation_by_lease on budget_reservation (tenant_id, leased_until);
call holdfast.hold_to_tenant('budget_reservation');
call holdfast.open_to_system('budget_reservation', 'select');

-- What the model calls of a day used, by user, agent and model. Without a user or an agent, the name is empty.
create table model_usage (
  tenant_id uuid not null references tenant (id),
  day date not null,
  user_name text collate "C" not null,
  agent text collate "C" not null,
  model text collate "C" not null,
  calls bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cost double precision not null,
  primary key (tenant_id, day, user_name, agent, model)
) with (fillfactor = 70);
call holdfast.hold_to_tenant('model_usage');
call holdfast.open_to_system('model_usage', 'select');
