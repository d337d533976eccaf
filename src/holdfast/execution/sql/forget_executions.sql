-- Deletes calls outside of turns that ended long ago, some at a time, with their outputs. What a person has yet to decide about stays.
delete from tool_executions e
using (
  select id from tool_executions
  where tenant_id = $1 and run_id is null and status <> 'unknown' and finished_at < holdfast.now() - $2::interval
  order by finished_at limit $3 for update skip locked
) old
where e.tenant_id = $1 and e.id = old.id
