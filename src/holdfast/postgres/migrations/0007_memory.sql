-- What agents remember: one short text in one of four scopes, with the vectors and words by which it is found.

-- Partitioned by scope; the partitions have no grants of their own, for one that has is read past the policy of the whole.
-- `owner` is whose it is: a session, a user, an agent, or the tenant itself. `agent_id` brought it in, `user_id` is whose session it was.
-- `conversation`, `seq`, `author` and `said_at`: where, in which place, by whom and when it was said, if it was said. It is found while
-- it is valid (`valid_from`, `valid_to`: what took its place is `superseded_by`), not expired, not buried and not faded.
-- `language` chose its model; `embedded` is the model of its vector, null where one is still to be made, with a blank at its end where it is
-- to be made anew: a memory has vectors of that model and of none other, but for the client's own. `length` counts `terms`, null
-- where they are still to be made: in rows that came by plain SQL. `terms` come last: they are read when it is deleted, and never before.
-- `digest` stands for its owner, its text and its place: what is said again is folded into what is there.
create table memory (
  tenant_id uuid not null references tenant (id),
  scope text collate "C" not null check (scope in ('session', 'user', 'agent', 'organization')),
  id uuid not null default holdfast.uuid7(),
  owner uuid not null,
  agent_id uuid,
  user_id uuid,
  version int not null default 1,
  length int,
  importance float8 not null default 1.0 check (importance between 0 and 1),
  access_count int not null default 0,
  last_accessed timestamptz not null default holdfast.now(),
  created_at timestamptz not null default holdfast.now(),
  valid_from timestamptz not null default holdfast.now(),
  valid_to timestamptz not null default 'infinity',
  expires_at timestamptz not null default 'infinity',
  buried_at timestamptz,
  pinned boolean not null default false,
  by_owner boolean not null default false,
  tells_when boolean not null default false,
  seq bigint,
  said_at timestamptz,
  language text collate "C",
  embedded text collate "C",
  type text collate "C" not null default 'fact',
  trust text collate "C" not null default 'user' check (trust in ('system', 'user', 'agent', 'tool', 'untrusted')),
  conversation text collate "C",
  author_terms bigint[] not null default '{}',
  author text,
  superseded_by uuid,
  document_id uuid,
  chunk_index int,
  source text,
  key text collate "C",
  digest uuid not null,
  metadata jsonb not null default '{}' check (jsonb_typeof(metadata) = 'object'),
  content text not null,
  terms bigint[],
  primary key (tenant_id, scope, owner, id)
) partition by list (scope);
create table memory_session partition of memory for values in ('session') with (fillfactor = 85);
create table memory_user partition of memory for values in ('user') with (fillfactor = 85);
create table memory_agent partition of memory for values in ('agent') with (fillfactor = 85);
create table memory_organization partition of memory for values in ('organization') with (fillfactor = 85);
create index memory_by_id on memory (tenant_id, id);
create unique index memory_once on memory (tenant_id, scope, owner, key) where key is not null;
create unique index memory_said_once on memory (tenant_id, scope, digest) where valid_to = 'infinity' and buried_at is null;
create index memory_by_place on memory (tenant_id, scope, owner, conversation, seq) where conversation is not null;
create index memory_by_expiry on memory (tenant_id, expires_at) where expires_at < 'infinity';
create index memory_user_by_age on memory_user (tenant_id, created_at); -- only these two fade
create index memory_agent_by_age on memory_agent (tenant_id, created_at);
create index memory_unread on memory (tenant_id) where length is null;
create index memory_by_model on memory (tenant_id, language, embedded);
call holdfast.hold_to_tenant('memory');
call holdfast.open_to_system('memory', 'select');

-- Vectors, apart from the text: a narrow row is read fast, and halfvec is never moved out of line. A table for each length of vectors
-- that our models have, and one for the rest. `model` made it; a client's own has the model ''. `live_until` and `importance` are the
-- memory's (the first of its ends), so that the nearest of many are found without a look at the memories.
create table memory_vector (
  tenant_id uuid not null,
  scope text collate "C" not null,
  owner uuid not null,
  memory_id uuid not null,
  dimensions int not null,
  importance float4 not null,
  live_until timestamptz not null,
  model text collate "C" not null,
  embedding halfvec not null check (vector_dims(embedding) = dimensions),
  primary key (tenant_id, scope, owner, model, memory_id, dimensions)
) partition by list (dimensions);
create table memory_vector_384 partition of memory_vector for values in (384);
create table memory_vector_512 partition of memory_vector for values in (512);
create table memory_vector_other partition of memory_vector default;
call holdfast.hold_to_tenant('memory_vector');

-- Which words occur where. Rows under a btree: row-level security would never use a GIN index.
create table memory_term (
  tenant_id uuid not null,
  scope text collate "C" not null,
  owner uuid not null,
  term bigint not null,
  memory_id uuid not null,
  primary key (tenant_id, scope, owner, term, memory_id)
);
call holdfast.hold_to_tenant('memory_term');

-- Every version of a memory that was changed, the current one too.
create table memory_revision (
  tenant_id uuid not null,
  memory_id uuid not null,
  version int not null,
  operation text not null,
  at timestamptz not null default holdfast.now(),
  content text not null,
  type text not null,
  importance float8 not null,
  trust text not null,
  metadata jsonb not null,
  primary key (tenant_id, memory_id, version)
);
call holdfast.hold_to_tenant('memory_revision');

-- That there was one, and why it is gone; nothing of what it said. `key_hash` is of its key: whoever reads its source again can tell that
-- it is not to come back.
create table memory_tombstone (
  tenant_id uuid not null,
  memory_id uuid not null,
  scope text collate "C" not null,
  owner uuid not null,
  key_hash bytea,
  reason text not null check (reason in ('forgotten', 'expired', 'faded', 'limit')),
  deleted_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, memory_id)
);
create index memory_gone_by_key on memory_tombstone (tenant_id, scope, owner, key_hash) where key_hash is not null;
create index memory_tombstone_by_time on memory_tombstone (deleted_at) where key_hash is null; -- which memory/sweep.py forgets
call holdfast.hold_to_tenant('memory_tombstone');
call holdfast.open_to_system('memory_tombstone', 'select, delete');

-- Organizational memories of which tenants have a vector index of their own (memory/indexes.py), by model.
create table memory_index (
  tenant_id uuid not null references tenant (id),
  model text collate "C" not null,
  dimensions int not null,
  built_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, model)
);
call holdfast.hold_to_tenant('memory_index');

-- Who makes words and vectors of a tenant's memories now (memory/indexing.py): one process at a time. It writes only what is as it was
-- read, so nothing depends on the lease but that work is done once.
create table memory_indexing (
  tenant_id uuid not null references tenant (id),
  holder uuid not null,
  leased_until timestamptz not null,
  primary key (tenant_id)
);
call holdfast.hold_to_tenant('memory_indexing');

-- Global: which model is wanted for each language, null for none: that of the process that opened last. Others embed what has no vector,
-- and replace none, so that two with different settings do not embed against each other.
create table memory_model (
  language text collate "C" primary key,
  model text collate "C",
  opened_at timestamptz not null
);
grant select, insert, update on memory_model to holdfast_system;
