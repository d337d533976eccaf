-- The gateway: services as tools, keys that speak for an agent, and the sessions of MCP clients that keep one.

-- A tool that is a service has its method here: `host/service/action/version`.
alter table tool_t add column service text collate "C";
create unique index tool_by_service on tool_t (host_id, service) where service is not null;

-- Whose holder is taken for this agent, and may call what the agent may.
alter table api_key add column agent text;

-- What an MCP client has carried back of a call that a person has allowed: it is good for that call, and for no other while it lasts.
create table used_state (
  tenant_id uuid not null references tenant (id),
  nonce uuid not null,
  expires_at timestamptz not null,
  primary key (tenant_id, nonce)
);
create index used_state_by_end on used_state (tenant_id, expires_at);
call holdfast.hold_to_tenant('used_state');

-- A session of an MCP client of 2025-11-25 or before. Any process answers it: what it said of itself, which level of logs it wants and which
-- resources it watches is here. `key` is a digest of the id that the client has: whoever reads it here cannot use it. It ends at `ends_at`,
-- which moves on as it is used. `transport`: `http` is streamable HTTP, `sse` HTTP+SSE.
create table mcp_session (
  tenant_id uuid not null references tenant (id),
  key text collate "C" not null,
  user_name text not null,
  agent text,
  transport text not null check (transport in ('http', 'sse')),
  protocol_version text not null,
  client jsonb not null default '{}',
  log_level text,
  subscriptions text[] not null default '{}',
  created_at timestamptz not null default holdfast.now(),
  ends_at timestamptz not null,
  primary key (tenant_id, key)
);
create index mcp_session_by_end on mcp_session (tenant_id, ends_at);
create index mcp_session_by_user on mcp_session (tenant_id, user_name, ends_at);
call holdfast.hold_to_tenant('mcp_session');
call holdfast.open_to_system('mcp_session', 'select');

-- The stream of an answer that can be taken up again; `requests` are the ids of what is answered. Whoever works on it says so until
-- `leased_until`; who finds that past, and the stream not ended, knows that nothing follows.
create table mcp_stream (
  tenant_id uuid not null,
  session_key text collate "C" not null,
  id text collate "C" not null,
  requests json not null,
  leased_until timestamptz not null,
  ended_at timestamptz,
  primary key (tenant_id, session_key, id),
  foreign key (tenant_id, session_key) references mcp_session (tenant_id, key) on delete cascade
);
call holdfast.hold_to_tenant('mcp_stream');

-- What was sent on a stream, numbered by the one who sends on it, so that a client that lost it goes on anywhere. Of HTTP+SSE, what waits for
-- the process that has the session's stream: there `stream` is one of the requests.
create table mcp_event (
  tenant_id uuid not null,
  session_key text collate "C" not null,
  stream text collate "C" not null,
  number bigint not null,
  message json not null,
  primary key (tenant_id, session_key, stream, number),
  foreign key (tenant_id, session_key) references mcp_session (tenant_id, key) on delete cascade
);
call holdfast.hold_to_tenant('mcp_event');

-- What a client is asked; whichever process takes its answer puts it here, and whoever asked finds it.
create table mcp_question (
  tenant_id uuid not null,
  session_key text collate "C" not null,
  id text collate "C" not null,
  answer json,
  primary key (tenant_id, session_key, id),
  foreign key (tenant_id, session_key) references mcp_session (tenant_id, key) on delete cascade
);
call holdfast.hold_to_tenant('mcp_question');
