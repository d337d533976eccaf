-- The output types of GraphQL sources: what callers choose of a result is checked by them. They are JSON as text, since they are only read as a whole,
-- and apart from the sources, since lists of sources and the history need none of them.
create table selectable_types (
  host_id uuid not null,
  source_id uuid not null,
  hash bytea not null,
  types bytea not null,
  primary key (host_id, source_id),
  foreign key (host_id, source_id) references tool_source (host_id, source_id) on delete cascade
);
call holdfast.hold_to_tenant('selectable_types', 'host_id');
