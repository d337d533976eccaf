-- Tenants with direct calls that ended long ago: one index lookup per tenant.
select t.id from tenant t, lateral (
  select from tool_executions e
  where e.tenant_id = t.id and e.run_id is null and e.status <> 'unknown' and e.finished_at < holdfast.now() - $1::interval limit 1
) has_work
