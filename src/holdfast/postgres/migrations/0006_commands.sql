-- Work for others: a command is asked for here, done by a worker, and answered by one completion.

-- `token` fences: each claim has the next one, and only the newest may complete, renew or fail the command.
-- `max_attempts`: what whoever asked wants; else the worker's skill says it, at the first claim. `hash` is the correlation id's,
-- as the log reckons it: whatever is published about a command is in one partition. `error`: of the last attempt.
-- Rows change a few times and then rest: without those settings a full table would leave its queue full of dead entries.
-- `failed`: refused for good. `dead`: given up after all attempts, and a dead letter.
create table command (
  tenant_id uuid not null references tenant (id),
  correlation_id text collate "C" not null,
  skill text collate "C" not null,
  arguments json not null,
  reply_to text not null,
  headers json not null default '{}',
  hash bigint not null,
  priority int not null default 0,
  state text not null default 'queued' check (state in ('queued', 'running', 'done', 'failed', 'cancelled', 'dead')),
  run_at timestamptz not null default holdfast.now(),
  attempts int not null default 0,
  max_attempts int check (max_attempts > 0),
  token bigint not null default 0,
  worker text,
  leased_until timestamptz,
  error text,
  created_at timestamptz not null default holdfast.now(),
  started_at timestamptz,
  finished_at timestamptz,
  primary key (tenant_id, correlation_id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.02);
create index command_ready on command (tenant_id, skill, priority desc, run_at) where state = 'queued';
create index command_running on command (tenant_id, leased_until) where state = 'running';
create index command_by_time on command (tenant_id, created_at);
create index command_finished on command (tenant_id, finished_at) where finished_at is not null;
call holdfast.hold_to_tenant('command');
call holdfast.open_to_system('command', 'select');

-- What came back: the one that counts, and those that came late or twice. No key to the command: a foreign worker may answer one we do not know.
create table command_completion (
  tenant_id uuid not null references tenant (id),
  correlation_id text collate "C" not null,
  id uuid not null default holdfast.uuid7(),
  applied boolean not null,
  result json,
  error json,
  worker text,
  at timestamptz not null default holdfast.now(),
  primary key (tenant_id, correlation_id, id),
  check ((result is null) <> (error is null))
);
create unique index completion_applied_once on command_completion (tenant_id, correlation_id) where applied;
create index completion_by_time on command_completion (tenant_id, at);
call holdfast.hold_to_tenant('command_completion');

-- How often a skill may run, over all workers: a bucket of tokens that fills by itself, and holds those of one second.
create table skill_rate (
  tenant_id uuid not null references tenant (id),
  skill text collate "C" not null,
  per_second double precision not null check (per_second > 0),
  tokens double precision not null,
  filled_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, skill)
);
call holdfast.hold_to_tenant('skill_rate');

-- A dead command is kept as long as its dead letter is.
create index dead_letter_of_command on dead_letter (tenant_id, correlation_id) where correlation_id is not null;
