-- Tenants with direct calls whose lease has expired: one index lookup per tenant.
select t.id from tenant t, lateral (
  select from tool_executions e
  where e.tenant_id = t.id and e.run_id is null and e.status = 'running' and e.leased_until <= holdfast.now() limit 1
) has_work
