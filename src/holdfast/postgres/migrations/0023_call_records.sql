-- Calls through the gateway are rows, too. They belong to no run, so that they are in no index of the calls of runs; and a call is in the index of those that
-- ended when it has ended.
drop index execution_of_call;
create unique index execution_of_call on tool_executions (tenant_id, run_id, step, call_id) where run_id is not null;
drop index execution_finished_alone;
create index execution_finished_alone on tool_executions (tenant_id, finished_at)
  where run_id is null and status <> 'unknown' and finished_at is not null;
