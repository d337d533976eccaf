-- Deletes records of the sandbox that are older than $2.
delete from sandbox_executions s using (
  select id from sandbox_executions
  where tenant_id = $1 and created_at < holdfast.now() - $2::interval
  order by created_at limit $3 for update skip locked
) old
where s.tenant_id = $1 and s.id = old.id
