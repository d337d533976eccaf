-- Conversations: one log of nodes for each, with a gap-free number, and the state that belongs to it.
-- A conversation and its root node have one id. Documents are trees of the same kind, without a session.

create table conversation (
  tenant_id uuid not null references tenant (id),
  id uuid not null,
  kind text not null default 'conversation' check (kind in ('conversation', 'document')),
  session_id text,
  app_name text not null,
  user_id uuid,
  user_name text,
  agent_name text,
  revision bigint not null default 0,
  last_seq bigint not null default 0,
  last_turn bigint not null default 0,
  forked_from uuid,
  forked_at bigint,
  created_at timestamptz not null default holdfast.now(),
  updated_at timestamptz not null default holdfast.now(),
  ended_at timestamptz,
  primary key (tenant_id, id),
  unique (tenant_id, session_id),
  check ((session_id is null) = (kind = 'document')),
  check ((user_id is null) = (user_name is null))
) with (fillfactor = 70);  -- every append updates its row: there is room to do it in place, and no index has to follow
create index conversation_by_user on conversation (tenant_id, user_id, id);
create index conversation_by_app on conversation (tenant_id, app_name, user_id);
call holdfast.hold_to_tenant('conversation');

-- `seq` is the node's number in the log: 0 is the root's, the others follow without a gap. `place` orders siblings.
-- `payload` is what every reader understands; `native` is the same as one framework (`form`) wrote it, kept to the letter.
-- `state` are the changes that came with the node: a value in brackets, empty brackets where a key was deleted.
create table node (
  tenant_id uuid not null,
  root uuid not null,
  seq bigint not null,
  id uuid not null,
  parent uuid,
  place numeric not null,
  context_type text not null,
  context_name text not null,
  context_value text not null,
  content text not null,
  payload jsonb,
  form text,
  native json,
  state jsonb,
  key text,
  version int not null default 1,
  revision bigint not null,
  deleted boolean not null default false,
  created_at timestamptz not null default holdfast.now(),
  updated_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, root, seq),
  unique (tenant_id, id),
  foreign key (tenant_id, root) references conversation (tenant_id, id) on delete cascade,
  check ((parent is null) = (seq = 0))
);
create unique index node_by_key on node (tenant_id, root, key) where key is not null;
-- The children of a root are the log itself; only what lies deeper needs to be found by its parent.
create index node_by_parent on node (tenant_id, parent, place) where parent <> root;
call holdfast.hold_to_tenant('node');

-- What a node was before it was edited, deleted or moved.
create table node_revision (
  tenant_id uuid not null,
  node_id uuid not null,
  version int not null,
  parent uuid,
  place numeric not null,
  context_type text not null,
  context_name text not null,
  context_value text not null,
  content text not null,
  payload jsonb,
  form text,
  native json,
  deleted boolean not null,
  revision bigint not null,
  updated_at timestamptz not null,
  primary key (tenant_id, node_id, version),
  foreign key (tenant_id, node_id) references node (tenant_id, id) on delete cascade
);
call holdfast.hold_to_tenant('node_revision');

-- One row for each key. `owner`: the conversation, the user, or the tenant for what an app shares; the latter two hold for one app.
-- A deleted key keeps its row, without a value: its version goes on when it comes back.
create table state (
  tenant_id uuid not null,
  scope text not null check (scope in ('app', 'user', 'session')),
  owner uuid not null,
  app_name text not null,
  key text not null,
  value jsonb,
  version bigint not null default 1,
  updated_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, scope, owner, app_name, key)
);
call holdfast.hold_to_tenant('state');

-- Changes of a conversation's own state that came without a node, so that the state at any node can be told.
create table state_change (
  tenant_id uuid not null,
  root uuid not null,
  revision bigint not null,
  seq bigint not null,
  state jsonb not null,
  created_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, root, revision),
  foreign key (tenant_id, root) references conversation (tenant_id, id) on delete cascade
);
call holdfast.hold_to_tenant('state_change');

-- Who works on a conversation, and who waits for it: the lowest number whose lease has not run out holds it.
create table turn_claim (
  tenant_id uuid not null,
  root uuid not null,
  number bigint not null,
  holder text not null,
  interrupted boolean not null default false,
  leased_until timestamptz not null,
  created_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, root, number),
  foreign key (tenant_id, root) references conversation (tenant_id, id) on delete cascade
);
call holdfast.hold_to_tenant('turn_claim');
