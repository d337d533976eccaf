-- Tenants with old records of the sandbox: one index lookup per tenant.
select t.id from tenant t, lateral (
  select from sandbox_executions s
  where s.tenant_id = t.id and s.created_at < holdfast.now() - $1::interval limit 1
) has_work
