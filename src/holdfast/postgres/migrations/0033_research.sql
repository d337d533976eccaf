-- Research: questions that are answered from many chunks, under a budget of model calls and tokens.

-- `target`: whose documents, which of them, and whether all of their chunks are to be read. `model` answers all calls. `tokens` and `cost` are what
-- calls have used, `reserved` what those in progress can use at most; all of them together never exceed the budget. `overrun` is 1 unless a model
-- reported more than a call could use: later calls reserve so many times more. A process works on it while it holds the lease, and writes only
-- with the `epoch` of its lease. `stop`: the holder is to end it. `events` counts its events.
create table research (
  tenant_id uuid not null references tenant (id),
  id uuid not null,
  user_name text collate "C",
  agent text collate "C",
  question text not null,
  target jsonb not null,
  model text collate "C" not null,
  max_calls int not null check (max_calls >= 0),
  max_tokens bigint not null check (max_tokens >= 0),
  max_cost double precision check (max_cost > 0),
  calls int not null default 0,
  tokens bigint not null default 0,
  reserved bigint not null default 0 check (reserved >= 0),
  cost double precision not null default 0,
  reserved_cost double precision not null default 0,
  overrun double precision not null default 1,
  state text collate "C" not null default 'queued' check (state in ('queued', 'running', 'done', 'failed', 'cancelled')),
  stop boolean not null default false,
  events int not null default 0,
  report jsonb,
  error jsonb,
  holder uuid,
  leased_until timestamptz,
  epoch int not null default 0,
  claims int not null default 0,
  created_at timestamptz not null default holdfast.now(),
  started_at timestamptz,
  finished_at timestamptz,
  primary key (tenant_id, id),
  check (calls <= max_calls)
) with (fillfactor = 70);
create index research_open on research (tenant_id, leased_until) where state in ('queued', 'running');
create index research_by_user on research (tenant_id, user_name, id);
create index research_finished on research (tenant_id, finished_at) where finished_at is not null;
call holdfast.hold_to_tenant('research');
call holdfast.open_to_system('research', 'select');

-- A call of a model, by the hash of its step and prompt. The answer is stored before it is used, so that nobody asks for it again. `reserved`: what
-- the call in progress can use at most. Of an open call without it, the last request failed.
create table research_call (
  tenant_id uuid not null,
  research_id uuid not null,
  key uuid not null,
  step text collate "C" not null,
  state text collate "C" not null default 'open' check (state in ('open', 'done')),
  requests int not null default 1,
  reserved bigint not null,
  reserved_cost double precision not null default 0,
  answer text,
  reason text collate "C",
  model text collate "C",
  input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  cost double precision not null default 0,
  asked_at timestamptz not null default holdfast.now(),
  answered_at timestamptz,
  primary key (tenant_id, research_id, key),
  foreign key (tenant_id, research_id) references research (tenant_id, id) on delete cascade,
  check ((state = 'done') = (answer is not null))
);
call holdfast.hold_to_tenant('research_call');

-- What a step found or decided, where that could be different a second time: a search, or what to read. A resumed run takes it from here.
create table research_step (
  tenant_id uuid not null,
  research_id uuid not null,
  name text collate "C" not null,
  result jsonb not null,
  created_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, research_id, name),
  foreign key (tenant_id, research_id) references research (tenant_id, id) on delete cascade
);
call holdfast.hold_to_tenant('research_step');

-- How a research gets on, for those who watch it. `name`: a resumed run does not tell the same again.
create table research_event (
  tenant_id uuid not null,
  research_id uuid not null,
  seq int not null,
  name text collate "C" not null,
  kind text collate "C" not null,
  data jsonb not null,
  at timestamptz not null default holdfast.now(),
  primary key (tenant_id, research_id, seq),
  unique (tenant_id, research_id, name),
  foreign key (tenant_id, research_id) references research (tenant_id, id) on delete cascade
);
call holdfast.hold_to_tenant('research_event');
