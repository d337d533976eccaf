-- When a source is checked for changes, and the result of the last check. It is apart from the source, because it changes with every check.
-- `seconds`: between two checks; null: the default of the settings; 0: never. `file`: its file in the folder of the settings, which is watched
-- instead. `due_at`: null if no check is due at any time. `claimed_until`: a process is at it until then, or it has a rest.
-- `validators`: by what the server of the document recognises its version, and the hash of that version.
create table source_check (
  host_id uuid not null,
  source_id uuid not null,
  seconds double precision check (seconds >= 0),
  file text collate "C",
  due_at timestamptz,
  claimed_until timestamptz not null default '-infinity',
  validators jsonb,
  checked_at timestamptz,
  error text,
  failures int not null default 0,
  primary key (host_id, source_id),
  foreign key (host_id, source_id) references tool_source (host_id, source_id) on delete cascade
) with (fillfactor = 70);
create index source_check_due on source_check (due_at) where due_at is not null;
create index source_check_of_file on source_check (host_id, source_id) where file is not null;
call holdfast.hold_to_tenant('source_check', 'host_id');
call holdfast.open_to_system('source_check', 'select, update');

-- The first checks of the sources that are there already are spread over half a minute.
insert into source_check (host_id, source_id, seconds, due_at)
select o.host_id, o.source_id, case when o.kind <> 'mcp' and o.location = '' then 0 end,
  case when o.kind = 'mcp' or o.location <> '' then holdfast.now() + random() * interval '30 s' end
from tool_source o;

-- The imports of a source that changed its tools. The changes of the registry after `since` up to `revision` are those of the import.
-- `bytes`: of the former and new definitions of its tools in the history; 0 if they were removed from it.
create table source_import (
  host_id uuid not null,
  source_id uuid not null,
  revision bigint not null,
  since bigint not null,
  label text not null,
  added int not null,
  changed int not null,
  removed int not null,
  deactivated int not null,
  bytes bigint not null,
  update_user text not null,
  at timestamptz not null default holdfast.now(),
  primary key (host_id, source_id, revision),
  foreign key (host_id, source_id) references tool_source (host_id, source_id) on delete cascade
);
call holdfast.hold_to_tenant('source_import', 'host_id');
