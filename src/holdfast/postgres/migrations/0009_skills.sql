-- Skills and tools: what agents can know how to do, what they can do it with, and where tools come from.

-- One row of a tenant: whoever changes its skills, tools or sources locks it, and takes the next `revision`. So changes come one after
-- another, no two of them make a circle together, and whoever keeps a copy knows by one number whether it is current.
create table registry (
  host_id uuid not null references tenant (id),
  revision bigint not null default 0,
  primary key (host_id)
);
call holdfast.hold_to_tenant('registry', 'host_id');

-- Every change: what was there before, and what is there since. `kind` is the table without its ending.
create table registry_change (
  host_id uuid not null,
  revision bigint not null,
  number int not null,
  kind text collate "C" not null check (kind in ('agent', 'skill', 'tool', 'source', 'agent_skill', 'skill_tool', 'skill_dependency', 'secret')),
  name text not null,
  operation text not null check (operation in ('created', 'changed', 'removed')),
  before jsonb,
  after jsonb,
  update_user text not null,
  at timestamptz not null default holdfast.now(),
  primary key (host_id, revision, number)
);
create index registry_change_by_name on registry_change (host_id, kind, name, revision, number);
call holdfast.hold_to_tenant('registry_change', 'host_id');

-- `version` is the label that people see, `aggregate_version` the lock. `front_matter`: what a SKILL.md says beside name and description.
-- `app_name` is of the program that declares it; `gone`: that has it no longer, and so it was deactivated.
-- `terms` are the words of name and description, by which it is found; null where they are still to be made: in rows that came by plain SQL.
create table skill_t (
  host_id uuid not null references tenant (id),
  skill_id uuid not null default holdfast.uuid7(),
  parent_skill_id uuid,
  name varchar(126) collate "C" not null check (name ~ '^\S([^[:cntrl:]]*\S)?$'),
  description varchar(1024) not null default '',
  content_markdown text not null,
  description_embedding vector(384),
  version varchar(20) not null default '1.0.0',
  front_matter jsonb not null default '{}' check (jsonb_typeof(front_matter) = 'object'),
  origin text not null default 'db' check (origin in ('code', 'db')),
  app_name text not null default '',
  gone boolean not null default false,
  aggregate_version bigint not null default 1,
  active boolean not null default true,
  terms bigint[],
  embedded text collate "C",
  created_at timestamptz not null default holdfast.now(),
  update_ts timestamptz not null default holdfast.now(),
  update_user varchar(126) not null default session_user,
  primary key (host_id, skill_id),
  unique (host_id, name),
  foreign key (host_id, parent_skill_id) references skill_t (host_id, skill_id)
);
create index skill_by_parent on skill_t (host_id, parent_skill_id) where parent_skill_id is not null;
create index skill_inactive on skill_t (host_id, skill_id) where not active; -- what a search leaves out
create index skill_by_model on skill_t (host_id, embedded); -- what is still to be embedded
create index skill_unread on skill_t (host_id) where terms is null;
call holdfast.hold_to_tenant('skill_t', 'host_id');
call holdfast.open_to_system('skill_t', 'select');

-- What lies beside a SKILL.md: scripts, references, pictures.
create table skill_file (
  host_id uuid not null,
  skill_id uuid not null,
  path text collate "C" not null,
  content bytea not null,
  executable boolean not null default false,
  primary key (host_id, skill_id, path),
  foreign key (host_id, skill_id) references skill_t (host_id, skill_id) on delete cascade
);
call holdfast.hold_to_tenant('skill_file', 'host_id');

-- Where tools come from: a document of a back end. `settings`: what of it is taken, how it is reached, and which secrets it is shown.
-- `report`: what was left out of the last import, and why.
create table tool_source (
  host_id uuid not null references tenant (id),
  source_id uuid not null default holdfast.uuid7(),
  name varchar(126) collate "C" not null check (name ~ '^[a-zA-Z0-9][a-zA-Z0-9_-]{0,62}$'),
  kind text not null check (kind in ('openapi')),
  location text not null default '',
  settings jsonb not null default '{}',
  title text not null default '',
  document_hash bytea,
  report jsonb not null default '{}',
  aggregate_version bigint not null default 1,
  active boolean not null default true,
  imported_at timestamptz,
  created_at timestamptz not null default holdfast.now(),
  update_ts timestamptz not null default holdfast.now(),
  update_user varchar(126) not null default session_user,
  primary key (host_id, source_id),
  unique (host_id, name)
);
call holdfast.hold_to_tenant('tool_source', 'host_id');

-- How a tool is run is said by `implementation_type` and the column that goes with it; `request` says how arguments become an HTTP request
-- where `api_method` and `api_endpoint` alone do not. `access` is what calling it takes; `mode` null: by event where a worker serves it.
-- `schema_rest`: what the JSON Schema of its arguments says beside its parameters. `permissions`: what agents may do with it.
-- `operation` is what it is in its source; `gone`: source or program have it no longer, and so it was deactivated. Those that a program declares have
-- the origin `code`, but whether they are active, and their permissions, are for whoever administers the tenant.
create table tool_t (
  host_id uuid not null references tenant (id),
  tool_id uuid not null default holdfast.uuid7(),
  name varchar(126) collate "C" not null check (name ~ '^[a-zA-Z0-9_-]{1,64}$'),
  description text not null,
  implementation_type varchar(50) not null
    check (implementation_type in ('function', 'rest', 'graphql', 'mcp_server', 'python', 'javascript', 'bash', 'java')),
  implementation_class varchar(500),
  mcp_server_name varchar(126),
  api_endpoint varchar(1024),
  api_method varchar(10),
  script_content text,
  description_embedding vector(384),
  version varchar(20) not null default '1.0.0',
  app_name text not null default '',
  display_name text not null default '',
  openapi_schema jsonb,
  permissions jsonb not null default '{}' check (jsonb_typeof(permissions) = 'object'),
  request jsonb,
  schema_rest jsonb not null default '{}' check (jsonb_typeof(schema_rest) = 'object'),
  access text not null default 'execute' check (access in ('read', 'write', 'execute')),
  mode text check (mode in ('inline', 'event')),
  idempotent boolean not null default false,
  approve boolean not null default false,
  timeout double precision check (timeout > 0),
  origin text not null default 'db' check (origin in ('code', 'db', 'source')),
  source_id uuid,
  operation text collate "C",
  gone boolean not null default false,
  aggregate_version bigint not null default 1,
  active boolean not null default true,
  terms bigint[],
  embedded text collate "C",
  created_at timestamptz not null default holdfast.now(),
  update_ts timestamptz not null default holdfast.now(),
  update_user varchar(126) not null default session_user,
  primary key (host_id, tool_id),
  unique (host_id, name),
  foreign key (host_id, source_id) references tool_source (host_id, source_id),
  check ((source_id is null) = (origin <> 'source')),
  check (implementation_type <> 'rest' or api_endpoint is not null and api_method is not null)
);
create unique index tool_by_operation on tool_t (host_id, source_id, operation) where source_id is not null;
create index tool_inactive on tool_t (host_id, tool_id) where not active; -- what a search leaves out
create index tool_by_model on tool_t (host_id, embedded); -- what is still to be embedded
create index tool_unread on tool_t (host_id) where terms is null;
call holdfast.hold_to_tenant('tool_t', 'host_id');
call holdfast.open_to_system('tool_t', 'select');

-- An argument of a tool. What the columns cannot say of it is in `validation_schema`, whose `type` goes before `param_type`.
create table tool_param_t (
  host_id uuid not null,
  param_id uuid not null default holdfast.uuid7(),
  tool_id uuid not null,
  name varchar(255) collate "C" not null,
  param_type varchar(50) not null check (param_type in ('string', 'number', 'boolean', 'object', 'array', 'any')),
  required boolean not null default true,
  default_value jsonb,
  description text,
  validation_schema jsonb,
  order_index int not null default 0,
  aggregate_version bigint not null default 1,
  active boolean not null default true,
  update_ts timestamptz not null default holdfast.now(),
  update_user varchar(126) not null default session_user,
  primary key (host_id, param_id),
  unique (host_id, tool_id, name),
  foreign key (host_id, tool_id) references tool_t (host_id, tool_id) on delete cascade
);
call holdfast.hold_to_tenant('tool_param_t', 'host_id');

-- Which skills an agent has. The higher its `priority`, the earlier a skill stands in the prompt; then by `sequence_id` and name.
-- `config` overlays calls of the skill's tools: fixed `arguments`, `defaults`, a `timeout`, `approve`.
create table agent_skill_t (
  host_id uuid not null,
  agent_def_id uuid not null,
  skill_id uuid not null,
  config jsonb not null default '{}' check (jsonb_typeof(config) = 'object'),
  priority int not null default 0,
  sequence_id int not null default 0,
  aggregate_version bigint not null default 1,
  active boolean not null default true,
  update_ts timestamptz not null default holdfast.now(),
  update_user varchar(126) not null default session_user,
  primary key (host_id, agent_def_id, skill_id),
  foreign key (host_id, agent_def_id) references agent_definition_t (host_id, agent_def_id) on delete cascade,
  foreign key (host_id, skill_id) references skill_t (host_id, skill_id) on delete cascade
);
create index agent_skill_by_skill on agent_skill_t (host_id, skill_id);
call holdfast.hold_to_tenant('agent_skill_t', 'host_id');

-- Which tools a skill works with, and how far: a tool that takes more than `access_level` is not disclosed.
create table skill_tool_t (
  host_id uuid not null,
  skill_id uuid not null,
  tool_id uuid not null,
  config jsonb not null default '{}' check (jsonb_typeof(config) = 'object'),
  access_level varchar(20) not null default 'read' check (access_level in ('read', 'write', 'execute')),
  aggregate_version bigint not null default 1,
  active boolean not null default true,
  update_ts timestamptz not null default holdfast.now(),
  update_user varchar(126) not null default session_user,
  primary key (host_id, skill_id, tool_id),
  foreign key (host_id, skill_id) references skill_t (host_id, skill_id) on delete cascade,
  foreign key (host_id, tool_id) references tool_t (host_id, tool_id) on delete cascade
);
create index skill_tool_by_tool on skill_tool_t (host_id, tool_id);
call holdfast.hold_to_tenant('skill_tool_t', 'host_id');

-- What a skill needs (`required`: it is loaded with it) or can use (when it is asked for). No cascade: what others need stays.
create table skill_dependency_t (
  host_id uuid not null,
  skill_id uuid not null,
  depends_on_skill_id uuid not null,
  required boolean not null default true,
  aggregate_version bigint not null default 1,
  active boolean not null default true,
  update_ts timestamptz not null default holdfast.now(),
  update_user varchar(126) not null default session_user,
  primary key (host_id, skill_id, depends_on_skill_id),
  foreign key (host_id, skill_id) references skill_t (host_id, skill_id),
  foreign key (host_id, depends_on_skill_id) references skill_t (host_id, skill_id),
  check (skill_id <> depends_on_skill_id)
);
create index skill_dependency_by_needed on skill_dependency_t (host_id, depends_on_skill_id);
call holdfast.hold_to_tenant('skill_dependency_t', 'host_id');

-- By what skills and tools are found, apart from their texts: narrow rows are read fast. `kind`: skill or tool. A
-- posting is found again by the `terms` of its row, and those of rows that plain SQL removed are forgotten when a search meets them.
create table registry_vector (
  host_id uuid not null,
  kind text collate "C" not null check (kind in ('skill', 'tool')),
  id uuid not null,
  model text collate "C" not null,
  embedding halfvec not null,
  primary key (host_id, kind, id)
);
alter table registry_vector alter column embedding set storage main; -- never moved out of line
call holdfast.hold_to_tenant('registry_vector', 'host_id');
create table registry_term (
  host_id uuid not null,
  kind text collate "C" not null check (kind in ('skill', 'tool')),
  term bigint not null,
  id uuid not null,
  primary key (host_id, kind, term, id)
);
call holdfast.hold_to_tenant('registry_term', 'host_id');

-- Who makes words and vectors of a tenant's skills and tools now (skills/indexing.py), as memory_indexing says it for memories.
create table registry_indexing (
  host_id uuid not null references tenant (id),
  holder uuid not null,
  leased_until timestamptz not null,
  primary key (host_id)
);
call holdfast.hold_to_tenant('registry_indexing', 'host_id');

-- How often a tool was called and how long it took, counted behind the callers' backs.
create table tool_usage (
  host_id uuid not null,
  tool_id uuid not null,
  calls bigint not null default 0,
  failures bigint not null default 0,
  total_ms double precision not null default 0,
  last_called timestamptz,
  primary key (host_id, tool_id),
  foreign key (host_id, tool_id) references tool_t (host_id, tool_id) on delete cascade
) with (fillfactor = 70);
call holdfast.hold_to_tenant('tool_usage', 'host_id');

-- Which skills an agent has loaded in a conversation: their tools stay for the turns to come.
create table conversation_skill (
  tenant_id uuid not null,
  root uuid not null,
  agent text collate "C" not null,
  skill_id uuid not null,
  loaded_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, root, agent, skill_id),
  foreign key (tenant_id, root) references conversation (tenant_id, id) on delete cascade,
  foreign key (tenant_id, skill_id) references skill_t (host_id, skill_id) on delete cascade
);
create index conversation_skill_by_skill on conversation_skill (tenant_id, skill_id);
call holdfast.hold_to_tenant('conversation_skill');

-- What back ends are shown and nobody else: sealed by a key that is not in this database (`key_id` tells which).
create table secret (
  host_id uuid not null references tenant (id),
  name varchar(126) collate "C" not null check (name ~ '^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,125}$'),
  sealed bytea not null,
  key_id text not null,
  hosts text[] not null default '{}',
  aggregate_version bigint not null default 1,
  created_at timestamptz not null default holdfast.now(),
  update_ts timestamptz not null default holdfast.now(),
  update_user varchar(126) not null default session_user,
  primary key (host_id, name)
);
call holdfast.hold_to_tenant('secret', 'host_id');
revoke select on secret from holdfast_tenant;

-- Executions that belong to no run: somebody called the tool directly. `leased_until`: when nobody is at it any more. `given_params`: the arguments
-- of a call with a key as they were given, without defaults, which may change.
alter table tool_executions
  alter column run_id drop not null, alter column step drop not null, alter column call_id drop not null, alter column token drop not null,
  add column user_name text, add column agent text collate "C", add column key text collate "C", add column leased_until timestamptz,
  add column correlation_id text collate "C", add column given_params jsonb,
  add check ((run_id is null) = (step is null) and (run_id is null) = (call_id is null) and (run_id is null) = (token is null)),
  drop constraint tool_executions_status_check,
  add constraint tool_executions_status_check check (status in ('running', 'done', 'failed', 'cancelled', 'unknown'));
create unique index execution_by_key on tool_executions (tenant_id, key, (coalesce(user_name, ''))) where key is not null;
create index execution_by_user on tool_executions (tenant_id, user_name, id) where run_id is null;
create index execution_by_correlation on tool_executions (tenant_id, correlation_id) where correlation_id is not null;
create index execution_by_tool on tool_executions (tenant_id, tool_id, id);
create index execution_open on tool_executions (tenant_id, status, id) where status in ('running', 'unknown');
create index execution_alone on tool_executions (tenant_id, leased_until) where run_id is null and status = 'running';
create index execution_finished_alone on tool_executions (tenant_id, finished_at) where run_id is null and status <> 'unknown';
call holdfast.open_to_system('tool_executions', 'select');

-- What a tool gave, where that is more than a row should hold: the model reads a part, and whoever wants the whole finds it here.
create table tool_output (
  tenant_id uuid not null,
  execution_id uuid not null,
  content_type text not null,
  content bytea not null,
  primary key (tenant_id, execution_id),
  foreign key (tenant_id, execution_id) references tool_executions (tenant_id, id) on delete cascade
);
call holdfast.hold_to_tenant('tool_output');

-- Which workers are there, and what they do: each says so every few seconds.
create table worker_presence (
  tenant_id uuid not null references tenant (id),
  worker uuid not null,
  name text not null,
  skills text[] not null,
  seen_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, worker)
);
call holdfast.hold_to_tenant('worker_presence');

-- They take more than they did, which `create or replace` cannot change.
drop function if exists holdfast.append_in_run, holdfast.remove_agent;
