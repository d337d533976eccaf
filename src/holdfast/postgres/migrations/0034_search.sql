-- What searches of documents need besides their tables.

-- A search without a filter counts the chunks of an owner by this index alone.
create index document_by_collection on document (tenant_id, scope, owner, collection) include (chunks, id) where chunks > 0;

-- The list of vector indexes now also has those of chunks. `vectors` is how many there were when the index was made or last looked at: it tells
-- which part of them a filter leaves.
alter table memory_index
  add column indexed text collate "C" not null default 'memory' check (indexed in ('memory', 'chunk')),
  add column vectors bigint not null default 0;
alter table memory_index drop constraint memory_index_pkey, add primary key (tenant_id, indexed, model);

-- Of two indexes that seem equal to the planner, it takes the newer one. Where most documents have one chunk, and most owners one entity, an index by
-- document or by owner alone seems as good as one that finds the row, until a long document or a large owner is searched. So the primary key of
-- chunks and of their words are newer than the other indexes, and so are the indexes that find an entity, which do not begin with its owner.
alter table chunk drop constraint chunk_pkey, add primary key (tenant_id, document_id, chunk_index);
alter table chunk_term drop constraint chunk_term_pkey, add primary key (tenant_id, term, document_id);
drop index entities_by_canonical;
create index entities_by_canonical on entities (tenant_id, canonical, scope, owner);
alter table entities drop constraint entities_tenant_id_scope_owner_key_key, add unique (tenant_id, key, scope, owner);
