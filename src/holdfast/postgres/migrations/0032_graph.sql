-- The graph: what memories and chunks of documents name, and how it is related. The memory of sessions has none.

-- Each (scope, owner) has entities of its own, so that what only a user's memories name shows to nobody else. `key` is the name as
-- names are compared. `canonical` is the key of the entity that it is merged into (`merged_into`), or its own: whoever looks for an
-- entity looks for all that have its canonical key. `model` made `embedding`, that of the name and the description.
create table entities (
  tenant_id uuid not null references tenant (id),
  id uuid not null default holdfast.uuid7(),
  scope text collate "C" not null check (scope in ('user', 'agent', 'organization')),
  owner uuid not null,
  merged_into uuid,
  created_at timestamptz not null default holdfast.now(),
  key text collate "C" not null,
  canonical text collate "C" not null,
  name varchar(255) not null,
  type varchar(50) not null,
  model text collate "C",
  description text,
  embedding halfvec,
  primary key (tenant_id, id),
  unique (tenant_id, scope, owner, key)
);
create index entities_by_canonical on entities (tenant_id, scope, owner, canonical);
create index entities_by_end on entities (tenant_id, scope, owner, reverse(key) collate "C"); -- "Lincoln" finds "Abraham Lincoln"
create index entities_embedded on entities (tenant_id, scope, owner, model) where embedding is not null;
call holdfast.hold_to_tenant('entities');

-- Which memory or chunk (`memory_id`) names what, and how often. `live_until` is the end of the memory, as in memory_vector.
create table memory_entities (
  tenant_id uuid not null,
  memory_id uuid not null,
  entity_id uuid not null,
  scope text collate "C" not null,
  owner uuid not null,
  document_id uuid,
  mentions int not null default 1,
  live_until timestamptz not null default 'infinity',
  primary key (tenant_id, memory_id, entity_id),
  foreign key (tenant_id, entity_id) references entities (tenant_id, id) on delete cascade,
  foreign key (tenant_id, document_id) references document (tenant_id, id) on delete cascade
);
create index memory_entities_by_entity on memory_entities (tenant_id, entity_id, memory_id);
create index memory_entities_by_document on memory_entities (tenant_id, document_id) where document_id is not null;
call holdfast.hold_to_tenant('memory_entities');

create table relationships (
  tenant_id uuid not null,
  source_id uuid not null,
  target_id uuid not null,
  relation_type varchar(50) collate "C" not null,
  scope text collate "C" not null,
  owner uuid not null,
  weight float8 not null default 1.0,
  description text,
  primary key (tenant_id, source_id, target_id, relation_type),
  foreign key (tenant_id, source_id) references entities (tenant_id, id) on delete cascade,
  foreign key (tenant_id, target_id) references entities (tenant_id, id) on delete cascade
);
create index relationships_by_target on relationships (tenant_id, target_id);
call holdfast.hold_to_tenant('relationships');

-- Which memories and chunks state a relationship. It goes with the last of them.
create table relationship_sources (
  tenant_id uuid not null,
  memory_id uuid not null,
  source_id uuid not null,
  target_id uuid not null,
  relation_type varchar(50) collate "C" not null,
  document_id uuid,
  live_until timestamptz not null default 'infinity',
  primary key (tenant_id, memory_id, source_id, target_id, relation_type),
  foreign key (tenant_id, source_id, target_id, relation_type)
    references relationships (tenant_id, source_id, target_id, relation_type) on delete cascade,
  foreign key (tenant_id, document_id) references document (tenant_id, id) on delete cascade
);
create index relationship_sources_by_relationship on relationship_sources (tenant_id, source_id, target_id, relation_type);
create index relationship_sources_by_document on relationship_sources (tenant_id, document_id) where document_id is not null;
call holdfast.hold_to_tenant('relationship_sources');

-- Why two entities are one: a memory or a chunk states that one name stands for the other, or, without `memory_id`, somebody said so.
-- A merge that was undone stays, so that the same statement, read again, does not repeat it.
create table entity_merges (
  tenant_id uuid not null,
  id uuid not null default holdfast.uuid7(),
  keep_id uuid not null,
  other_id uuid not null,
  memory_id uuid,
  document_id uuid,
  created_at timestamptz not null default holdfast.now(),
  undone_at timestamptz,
  primary key (tenant_id, id),
  foreign key (tenant_id, keep_id) references entities (tenant_id, id) on delete cascade,
  foreign key (tenant_id, other_id) references entities (tenant_id, id) on delete cascade,
  foreign key (tenant_id, document_id) references document (tenant_id, id) on delete cascade
);
create index entity_merges_by_other on entity_merges (tenant_id, other_id, keep_id);
create index entity_merges_by_keep on entity_merges (tenant_id, keep_id);
create index entity_merges_by_memory on entity_merges (tenant_id, memory_id) where memory_id is not null;
create index entity_merges_by_document on entity_merges (tenant_id, document_id) where document_id is not null;
call holdfast.hold_to_tenant('entity_merges');

-- How far a language model has read a tenant's memories and chunks for the graph, in the order of their ids, and what that cost today.
-- One process at a time reads, while it holds the lease.
create table graph_reading (
  tenant_id uuid not null references tenant (id),
  last_memory uuid,
  last_chunk uuid,
  day date,
  reserved bigint not null default 0,
  tokens bigint not null default 0,
  calls bigint not null default 0,
  holder uuid,
  leased_until timestamptz,
  primary key (tenant_id)
);
call holdfast.hold_to_tenant('graph_reading');
