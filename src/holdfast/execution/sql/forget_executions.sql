-- Deletes a batch of direct calls that ended long ago, with their outputs. Keeps calls with an unknown outcome: a person has yet to decide about them.
delete from tool_executions e
using (
  select id from tool_executions
  where tenant_id = $1 and run_id is null and status <> 'unknown' and finished_at < holdfast.now() - $2::interval
  order by finished_at limit $3 for update skip locked
) old
where e.tenant_id = $1 and e.id = old.id
