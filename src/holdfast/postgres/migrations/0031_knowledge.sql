-- Documents, their chunks, and what is needed to ingest them.

-- `scope` and `owner`: whose it is, as in `memory`. `version` counts the versions that were ingested, `hash` is that of the file they came
-- from. `status` is that of the newest job. `agent_id` brought it in. `title_key` is the title as searches compare it (memory/graph), and
-- `title_given` whether a caller gave it, not the file. `splitting` says how the chunks were made: the same file is split again if that changes.
create table document (
  tenant_id uuid not null references tenant (id),
  id uuid not null default holdfast.uuid7(),
  scope text collate "C" not null check (scope in ('user', 'agent', 'organization')),
  owner uuid not null,
  collection text collate "C" not null default 'default',
  name text collate "C" not null,
  title text,
  title_key text collate "C",
  title_given boolean not null default false,
  source text,
  agent_id uuid,
  version int not null default 0,
  hash bytea,
  splitting text collate "C",
  media_type text,
  size bigint not null default 0,
  status text collate "C" not null default 'pending' check (status in ('pending', 'running', 'ready', 'failed')),
  error text,
  metadata jsonb not null default '{}' check (jsonb_typeof(metadata) = 'object'),
  pages int,
  chunks int not null default 0,
  characters bigint not null default 0,
  created_at timestamptz not null default holdfast.now(),
  updated_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, id),
  unique (tenant_id, scope, owner, collection, name)
);
create index document_by_owner on document (tenant_id, scope, owner, id);
create index document_by_name on document (tenant_id, name, id);
create index document_by_title on document (tenant_id, title_key) where title_key is not null;
call holdfast.hold_to_tenant('document');

-- The chunks of the current version of each document. `content` is `text[char_start:char_end]` of the document's text. `passages` are the ranges
-- of `content` that have a vector each, as [start, end, start, end, …]. `length` is the number of lexemes, `embedded` the model of the vectors,
-- null where they are still to be made. `digest` stands for what is embedded: a new version takes over the vectors of what it kept. `marks` are the
-- pages and headings that begin in the chunk and in no former one: [character of the document, page, level, title], level 0 for a page. `after` are the blanks
-- between the chunk and what follows.
create table chunk (
  tenant_id uuid not null,
  document_id uuid not null,
  chunk_index int not null,
  id uuid not null default holdfast.uuid7(),
  first_page int,
  last_page int,
  char_start bigint not null,
  char_end bigint not null,
  tokens int not null,
  length int not null,
  language text collate "C" not null,
  embedded text collate "C",
  digest uuid not null,
  passages int[] not null,
  section text[] not null default '{}',
  marks json,
  after text not null default '',
  content text not null,
  primary key (tenant_id, document_id, chunk_index),
  unique (tenant_id, id),
  foreign key (tenant_id, document_id) references document (tenant_id, id) on delete cascade
);
create index chunk_by_place on chunk (tenant_id, document_id, char_start);
create index chunk_by_digest on chunk (tenant_id, document_id, digest);
create index chunk_by_model on chunk (tenant_id, language, embedded);
create index chunk_with_marks on chunk (tenant_id, document_id, chunk_index) where marks is not null;
call holdfast.hold_to_tenant('chunk');
call holdfast.open_to_system('chunk', 'select');

-- The vectors of chunks: one for each passage. A table for each length of vectors, as for memories.
create table chunk_vector (
  tenant_id uuid not null,
  document_id uuid not null,
  chunk_index int not null,
  passage smallint not null,
  dimensions int not null,
  model text collate "C" not null,
  embedding halfvec not null check (vector_dims(embedding) = dimensions),
  primary key (tenant_id, document_id, chunk_index, passage, model, dimensions)
) partition by list (dimensions);
create table chunk_vector_384 partition of chunk_vector for values in (384);
create table chunk_vector_512 partition of chunk_vector for values in (512);
create table chunk_vector_other partition of chunk_vector default;
call holdfast.hold_to_tenant('chunk_vector');

-- Which words occur in which chunks: one row for a word and a document, so that a long document has few rows.
create table chunk_term (
  tenant_id uuid not null,
  term bigint not null,
  document_id uuid not null,
  chunks int[] not null,
  primary key (tenant_id, term, document_id)
);
create index chunk_term_by_document on chunk_term (tenant_id, document_id);
call holdfast.hold_to_tenant('chunk_term');

-- A version of a document that is to be ingested. While it is uploaded, its document is not known to the database. `media_type` is the caller's,
-- `found_type` the one that the file has.
-- `due_at`: when a process may take it, which for a running one is when the lease ends. A process writes only with the `epoch` of its lease.
-- `attempts` counts those since it last got on. `position` is the parser's and the chunker's place after the last staged chunk.
create table ingest_job (
  tenant_id uuid not null,
  id uuid not null default holdfast.uuid7(),
  document_id uuid,
  hash bytea,
  splitting text collate "C",
  size bigint not null default 0,
  media_type text,
  state text collate "C" not null default 'pending' check (state in ('uploading', 'pending', 'running', 'done', 'failed', 'superseded')),
  error text,
  attempts int not null default 0,
  units int not null default 0,
  total_units int,
  chunks int not null default 0,
  embedded int not null default 0,
  characters bigint not null default 0,
  pages int,
  title text,
  found_type text,
  position bytea,
  holder uuid,
  due_at timestamptz not null default holdfast.now(),
  epoch int not null default 0,
  created_at timestamptz not null default holdfast.now(),
  updated_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, document_id) references document (tenant_id, id) on delete cascade,
  check (state = 'uploading' or document_id is not null and hash is not null and splitting is not null)
);
create index ingest_job_open on ingest_job (tenant_id, due_at, id) where state in ('pending', 'running');
create index ingest_job_uploading on ingest_job (tenant_id, updated_at) where state = 'uploading';
create index ingest_job_by_document on ingest_job (tenant_id, document_id, id);
call holdfast.hold_to_tenant('ingest_job');
call holdfast.open_to_system('ingest_job', 'select');

-- The file of a job, in pieces of at most 1 MB, until the job is done or superseded.
create table ingest_upload (
  tenant_id uuid not null,
  job_id uuid not null,
  piece int not null,
  bytes bytea not null,
  primary key (tenant_id, job_id, piece),
  foreign key (tenant_id, job_id) references ingest_job (tenant_id, id) on delete cascade
);
alter table ingest_upload alter column bytes set storage external; -- most files are compressed already
call holdfast.hold_to_tenant('ingest_upload');

-- Chunks of a job that has not ended, with what is stored for each: they become the document's in one transaction. `model` is that of the vectors,
-- null without any. `terms` are the distinct ones, `entities` what the graph takes from the chunk.
create table ingest_chunk (
  tenant_id uuid not null,
  job_id uuid not null,
  chunk_index int not null,
  id uuid not null default holdfast.uuid7(),
  first_page int,
  last_page int,
  char_start bigint not null,
  char_end bigint not null,
  tokens int not null,
  length int not null,
  language text collate "C" not null,
  model text collate "C",
  digest uuid not null,
  passages int[] not null,
  section text[] not null,
  marks json,
  after text not null default '',
  content text not null,
  terms bigint[] not null,
  entities json,
  vectors halfvec[],
  primary key (tenant_id, job_id, chunk_index),
  foreign key (tenant_id, job_id) references ingest_job (tenant_id, id) on delete cascade
);
create index ingest_chunk_by_digest on ingest_chunk (tenant_id, job_id, digest);
call holdfast.hold_to_tenant('ingest_chunk');
