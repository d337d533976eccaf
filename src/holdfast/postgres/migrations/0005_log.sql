-- The log: topics and their records, who has read how far, and what nobody could process.

-- A topic's partitions are fixed when it is made: a key would move to another one, and lose its order. Names without a dot:
-- on Kafka the tenant's name and a dot lead them, and no two tenants' topics can be the same. `id` tells a topic from one of the same
-- name that was removed: Kafka may still have its records.
create table topic (
  tenant_id uuid not null references tenant (id),
  id uuid not null default holdfast.uuid7(),
  name text collate "C" not null check (name ~ '^[A-Za-z0-9_-]{1,150}$'),
  partitions int not null check (partitions between 1 and 1000),
  created_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, name)
);
call holdfast.hold_to_tenant('topic');
call holdfast.open_to_system('topic', 'select');

-- The counter of each partition: whoever appends locks it until commit, so offsets have no gaps and are committed in their order.
-- Half of each page is left free: the row is updated by every append, and stays in its page.
create table topic_partition (
  tenant_id uuid not null,
  topic text collate "C" not null,
  partition int not null,
  next_offset bigint not null default 0,
  last_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, topic, partition),
  foreign key (tenant_id, topic) references topic (tenant_id, name) on delete cascade
) with (fillfactor = 50);
call holdfast.hold_to_tenant('topic_partition');
call holdfast.open_to_system('topic_partition', 'select');

-- Records, in partitions by day that are dropped as a whole (bus/retention.py). What no day was made for goes to `record_other`.
-- The counter keeps offsets unique; `at` is in the key because a partitioned table wants it there, and never falls as offsets rise.
-- `value` and `headers` are json, not jsonb: they are read as they were written, and nothing looks into them.
create table record (
  tenant_id uuid not null,
  topic text collate "C" not null,
  partition int not null,
  "offset" bigint not null,
  at timestamptz not null,
  id uuid not null,
  key text,
  headers json not null,
  value json not null,
  bytes int not null,
  primary key (tenant_id, topic, partition, "offset", at)
) partition by range (at);
create table record_other partition of record default;
call holdfast.hold_to_tenant('record');
call holdfast.open_to_system('record', 'select');

-- Those who read a log together. `seen_at`: a group that nobody has read with for long no longer keeps records from being dropped.
create table consumer_group (
  tenant_id uuid not null references tenant (id),
  name text not null,
  created_at timestamptz not null default holdfast.now(),
  seen_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, name)
);
call holdfast.hold_to_tenant('consumer_group');

create table consumer_member (
  tenant_id uuid not null,
  group_name text not null,
  id uuid not null,
  name text not null,
  topics text[] not null,
  leased_until timestamptz not null,
  joined_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, group_name, id),
  foreign key (tenant_id, group_name) references consumer_group (tenant_id, name) on delete cascade
);
call holdfast.hold_to_tenant('consumer_member');

-- How far a group has read a partition: `position` is the next offset, `broker_position` Kafka's. Only its `owner` at this `epoch`
-- moves it; epochs begin anywhere, so that those of a topic that was removed and made again are others. `attempts` at the record that is
-- next have failed, `failing_since` then; it is not tried before `retry_at`. `deaths`: owners that died since the position last moved,
-- whatever they had in hand; after too many the record is `on_trial`, delivered alone, and a dead letter if its owner dies once more.
-- No key to the topic: the relay to Kafka is a group here too, and Kafka may have partitions that we do not.
create table consumer_offset (
  tenant_id uuid not null,
  group_name text not null,
  topic text collate "C" not null,
  partition int not null,
  position bigint not null,
  broker_position bigint,
  owner uuid,
  epoch bigint not null default (random() * 1e15)::bigint,
  attempts int not null default 0,
  deaths int not null default 0,
  on_trial boolean not null default false,
  failing_since timestamptz,
  retry_at timestamptz,
  error text,
  updated_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, group_name, topic, partition)
) with (fillfactor = 50);
call holdfast.hold_to_tenant('consumer_offset');
call holdfast.open_to_system('consumer_offset', 'select, insert, update');

-- What a group could not process, whole, so that it outlives the log. `redriven`: it is delivered to its group once more.
-- A command that failed for good has its correlation id here, and no place in the log.
create table dead_letter (
  tenant_id uuid not null references tenant (id),
  id uuid not null default holdfast.uuid7(),
  group_name text not null,
  topic text collate "C" not null,
  partition int not null,
  "offset" bigint not null,
  at timestamptz not null,
  record_id uuid not null,
  key text,
  headers json not null,
  value json not null,
  correlation_id text,
  error text not null,
  attempts int not null,
  failed_at timestamptz not null default holdfast.now(),
  state text not null default 'dead' check (state in ('dead', 'redriven')),
  primary key (tenant_id, id),
  constraint dead_letter_once unique (tenant_id, group_name, topic, partition, "offset", record_id)
);
create index dead_letter_redriven on dead_letter (tenant_id, group_name) where state = 'redriven' and correlation_id is null;
call holdfast.hold_to_tenant('dead_letter');
call holdfast.open_to_system('dead_letter', 'select');

-- Global: who carries records to Kafka, one process at a time for each share of the topics. A process that lost its lease has an old epoch.
create table relay_lease (
  share int primary key,
  holder uuid,
  epoch bigint not null default 0,
  leased_until timestamptz not null default '-infinity'
);
insert into relay_lease (share) select generate_series(0, 3);
grant select, update on relay_lease to holdfast_system;
