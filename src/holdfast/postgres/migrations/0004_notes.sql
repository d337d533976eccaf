-- What an agent keeps in mind about a user: one Markdown text for each pair, which the agent itself edits.
create table agent_long_term_memory (
  tenant_id uuid not null references tenant (id),
  id uuid not null default holdfast.uuid7(),
  user_id uuid not null,
  agent_name text not null,
  notes text not null default '',
  version int not null default 1 check (version > 0),
  created_at timestamptz not null default holdfast.now(),
  updated_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, id),
  constraint agent_long_term_memory_by_user unique (tenant_id, user_id, agent_name)
);
call holdfast.hold_to_tenant('agent_long_term_memory');

-- Every version of the notes, the current one too: a model that overwrites them by mistake has destroyed nothing.
create table agent_long_term_memory_revision (
  tenant_id uuid not null references tenant (id),
  memory_id uuid not null,
  version int not null,
  operation text not null,
  notes text not null,
  created_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, memory_id, version),
  foreign key (tenant_id, memory_id) references agent_long_term_memory (tenant_id, id) on delete cascade
);
call holdfast.hold_to_tenant('agent_long_term_memory_revision');
