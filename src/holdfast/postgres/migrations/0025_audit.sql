-- The audit: what was called and changed, by whom, and with which outcome. Each tenant's entries are a chain of hashes (audit/chain.py).

-- Entries that are not in the chain yet. The application adds them here, in one small commit for many calls, and holdfast.seal_audit moves
-- them into the chain. `entry` has no personal data. What may be personal is in `person`; `entry` has a hash of it with the salt.
-- json, not jsonb: the hashes are of the text as it was written. Each row is deleted within a second, so it is vacuumed by their number.
create table audit_open (
  tenant_id uuid not null,
  id uuid not null,
  at timestamptz not null default holdfast.now(),
  entry json not null,
  person json,
  salt bytea,
  primary key (tenant_id, id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
call holdfast.hold_to_tenant('audit_open');
call holdfast.open_to_system('audit_open', 'select');
revoke update, delete on audit_open from holdfast_app;

-- The chain, in partitions by month that are dropped as a whole (audit/retention.py). `seq` has no gaps, and `previous` is the hash of the entry
-- before. No time falls from an entry to the next, so a partition is a part of each chain. The key has the time only because a partitioned table
-- wants it there: the row of audit_chain decides which entry comes next. The columns at the end are for searches, and nobody can write them.
create table audit (
  tenant_id uuid not null,
  seq bigint not null,
  sealed_at timestamptz not null,
  id uuid not null,
  at timestamptz not null,
  entry json not null,
  previous bytea not null,
  hash bytea not null,
  action text collate "C" not null generated always as (entry ->> 'action') stored,
  target text collate "C" not null generated always as (entry ->> 'target') stored,
  outcome text collate "C" not null generated always as (entry ->> 'outcome') stored,
  primary key (tenant_id, seq, sealed_at)
) partition by range (sealed_at);
create table audit_other partition of audit default;
create index audit_by_target on audit (tenant_id, target, seq);
call holdfast.hold_to_tenant('audit');
revoke insert, update, delete on audit from holdfast_app;

-- The personal data of entries, which can be erased. It has the same partitions.
create table audit_person (
  tenant_id uuid not null,
  seq bigint not null,
  sealed_at timestamptz not null,
  salt bytea not null,
  person json not null,
  user_name text collate "C" generated always as (person ->> 'user') stored,
  actor text collate "C" generated always as (person ->> 'actor') stored,
  primary key (tenant_id, seq, sealed_at)
) partition by range (sealed_at);
create table audit_person_other partition of audit_person default;
create index audit_person_by_user on audit_person (tenant_id, user_name, seq);
create index audit_person_by_actor on audit_person (tenant_id, actor, seq) where actor is not null;
call holdfast.hold_to_tenant('audit_person');
revoke insert, update, delete on audit_person from holdfast_app;

-- The first months, so that nothing goes to the partitions for all others. audit/retention.py makes those that follow.
do $$
declare
  month timestamp;
  bounds text;
begin
  for month in select date_trunc('month', holdfast.now() at time zone 'utc') + make_interval(months => n) from generate_series(0, 2) as n loop
    bounds := format('for values from (%L) to (%L)', month at time zone 'utc', (month + interval '1 month') at time zone 'utc');
    execute format('create table audit_%s partition of audit %s', to_char(month, 'YYYYMM'), bounds);
    execute format('create table audit_person_%s partition of audit_person %s', to_char(month, 'YYYYMM'), bounds);
  end loop;
end $$;

-- The end of each chain, and where it begins now: the last entry that retention dropped. Whoever adds entries locks the row, so that no
-- entry has two that follow it.
create table audit_chain (
  tenant_id uuid primary key references tenant (id),
  seq bigint not null default 0,
  hash bytea not null,
  sealed_at timestamptz not null default '-infinity',
  checkpoint_seq bigint not null default 0,
  checkpoint_hash bytea not null
);
call holdfast.hold_to_tenant('audit_chain');
call holdfast.open_to_system('audit_chain', 'select');
revoke insert, update, delete on audit_chain from holdfast_app;
