-- What ran in the sandbox. `execution_id`: the tool call that it was for. A call that is recorded nowhere has none.
create table sandbox_executions (
  tenant_id uuid not null,
  id uuid not null,
  execution_id uuid,
  run_id uuid,
  sandbox_type varchar(50) not null,
  code text not null,
  environment jsonb not null default '{}' check (jsonb_typeof(environment) = 'object'),
  stdout text not null default '',
  stderr text not null default '',
  exit_code int not null,
  reason varchar(50),
  execution_time_ms double precision not null,
  resource_usage jsonb not null default '{}' check (jsonb_typeof(resource_usage) = 'object'),
  created_at timestamptz not null default holdfast.now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, execution_id) references tool_executions (tenant_id, id) on delete cascade,
  foreign key (tenant_id, run_id) references runs (tenant_id, id) on delete cascade
);
create index sandbox_execution_by_execution on sandbox_executions (tenant_id, execution_id);
create index sandbox_execution_by_run on sandbox_executions (tenant_id, run_id);
create index sandbox_execution_by_age on sandbox_executions (tenant_id, created_at);
call holdfast.hold_to_tenant('sandbox_executions');
call holdfast.open_to_system('sandbox_executions', 'select');
