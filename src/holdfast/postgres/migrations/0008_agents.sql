-- Agents: who they are, what they were asked, what they did about it.

-- A conversation with an agent tells its topic of every change: `hash` is its id's, as the log reckons it.
alter table conversation add column topic text collate "C", add column hash bigint, add column last_run bigint not null default 0;
alter table conversation add check ((topic is null) = (hash is null));

-- `kind` and `name` make the topic, `{kind}-{name}`. Those that a program declares have the origin `code`, and are its alone to change.
create table agent_definition_t (
  host_id uuid not null references tenant (id),
  agent_def_id uuid not null,
  name text collate "C" not null,
  kind text not null default 'llm' check (kind in ('llm', 'system', 'ui')),
  description text not null default '',
  instructions text not null default '',
  model text,
  settings jsonb not null default '{}',
  origin text not null default 'db' check (origin in ('code', 'db')),
  active boolean not null default true,
  aggregate_version bigint not null default 1,
  update_user text not null default '',
  update_ts timestamptz not null default holdfast.now(),
  created_at timestamptz not null default holdfast.now(),
  primary key (host_id, agent_def_id),
  unique (host_id, name)
);
call holdfast.hold_to_tenant('agent_definition_t', 'host_id');

-- A run is one turn of an agent: what it was asked by (`trigger`, a node), who does it now (`holder`, until `leased_until`), how it ended.
-- `token` fences: each claim has the next one, and what an older one still tries to write is refused.
-- `number` counts the runs of a conversation. `seen_seq`: the last node that the model was shown. `stalls`: how many holders in a row were not heard
-- of again before they had anything stored, each since it had `claimed_at`.
create table runs (
  tenant_id uuid not null references tenant (id),
  id uuid not null,
  agent text collate "C" not null,
  root uuid not null,
  number bigint not null,
  trigger uuid not null,
  trigger_seq bigint not null,
  attempt int not null default 1,
  retry_of uuid,
  user_name text,
  state text not null default 'queued' check (state in ('queued', 'running', 'waiting', 'done', 'failed', 'cancelled')),
  stop text check (stop in ('cancel', 'interrupt')),
  holder text,
  leased_until timestamptz,
  token bigint not null default 0,
  claims int not null default 0,
  claimed_at timestamptz,
  stalls int not null default 0,
  run_at timestamptz not null default holdfast.now(),
  steps int not null default 0,
  input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  cost double precision not null default 0,
  model text,
  seen_seq bigint,
  answer uuid,
  error jsonb,
  created_at timestamptz not null default holdfast.now(),
  started_at timestamptz,
  finished_at timestamptz,
  primary key (tenant_id, id),
  unique (tenant_id, trigger, agent, attempt),
  foreign key (tenant_id, root) references conversation (tenant_id, id) on delete cascade,
  check ((state in ('done', 'failed', 'cancelled')) = (finished_at is not null))
) with (fillfactor = 70);
create unique index run_by_number on runs (tenant_id, root, number);
create index run_unfinished on runs (tenant_id, root, number) where finished_at is null;
create index run_due on runs (tenant_id, run_at) where state in ('queued', 'running');
create index run_by_user on runs (tenant_id, user_name, id);
create index run_finished on runs (tenant_id, finished_at) where finished_at is not null;
call holdfast.hold_to_tenant('runs');
call holdfast.open_to_system('runs', 'select');

-- A step is one question to the model: what was sent and why, and the reply as it came, stored before anything is done with it.
create table run_step (
  tenant_id uuid not null,
  run_id uuid not null,
  number int not null,
  sent json not null,
  reply jsonb,
  model text,
  input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  cost double precision not null default 0,
  started_at timestamptz not null default holdfast.now(),
  replied_at timestamptz,
  primary key (tenant_id, run_id, number),
  foreign key (tenant_id, run_id) references runs (tenant_id, id) on delete cascade
);
call holdfast.hold_to_tenant('run_step');

-- What those who watch are told beside nodes: text as it streams (gone when its node is there), questions, how runs ended.
-- `n` rises within a conversation: ten digits of it count within a run, by the characters that were streamed; a row's text ends at it.
create table turn_delta (
  tenant_id uuid not null,
  root uuid not null,
  n bigint not null,
  run_id uuid not null,
  kind text not null check (kind in ('token', 'thinking', 'approval', 'decision', 'error', 'done')),
  data jsonb not null,
  at timestamptz not null default holdfast.now(),
  primary key (tenant_id, root, n),
  foreign key (tenant_id, run_id) references runs (tenant_id, id) on delete cascade
);
create index delta_by_run on turn_delta (tenant_id, run_id);
call holdfast.hold_to_tenant('turn_delta');

-- Every execution of a tool. `unknown`: whoever ran it stopped meanwhile, and it must not run twice by itself.
create table tool_executions (
  tenant_id uuid not null,
  id uuid not null,
  tool_id uuid,
  run_id uuid not null,
  step int not null,
  call_id text not null,
  tool text not null,
  input_params jsonb,
  output_result jsonb,
  status text not null check (status in ('running', 'done', 'failed', 'unknown')),
  latency_ms double precision,
  error text,
  token bigint not null,
  created_at timestamptz not null default holdfast.now(),
  finished_at timestamptz,
  primary key (tenant_id, id),
  foreign key (tenant_id, run_id) references runs (tenant_id, id) on delete cascade
);
create unique index execution_of_call on tool_executions (tenant_id, run_id, step, call_id);
call holdfast.hold_to_tenant('tool_executions');

-- A call that a person has to allow. `reason`: it is on the agent's list, or it may have run already.
create table approval (
  tenant_id uuid not null,
  id uuid not null,
  run_id uuid not null,
  root uuid not null,
  step int not null,
  call_id text not null,
  tool text not null,
  arguments jsonb,
  user_name text,
  reason text not null check (reason in ('listed', 'unknown')),
  state text not null default 'pending' check (state in ('pending', 'approved', 'denied', 'withdrawn')),
  decided_by text,
  comment text,
  created_at timestamptz not null default holdfast.now(),
  decided_at timestamptz,
  primary key (tenant_id, id),
  foreign key (tenant_id, run_id) references runs (tenant_id, id) on delete cascade
);
create unique index approval_of_call on approval (tenant_id, run_id, step, call_id, reason);
create index approval_pending on approval (tenant_id, created_at) where state = 'pending';
call holdfast.hold_to_tenant('approval');

-- An edit of notes that is made again after a crash is made once.
alter table agent_long_term_memory_revision add column key text collate "C";
create unique index notes_revision_by_key on agent_long_term_memory_revision (tenant_id, memory_id, key) where key is not null;

-- These take or give more than they did, which `create or replace` cannot change.
drop function if exists holdfast.append, holdfast.append_all, holdfast.begin_change, holdfast.clear_messages, holdfast.create_conversation,
  holdfast.delete_node, holdfast.edit_node, holdfast.fork_conversation, holdfast.move_node, holdfast.set_state;
