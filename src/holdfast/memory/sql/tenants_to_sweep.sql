-- Returns tenants with memories that have expired or are old enough to have faded, by a few index lookups per tenant.
select t.id from tenant t, lateral (
  (select from memory m where m.tenant_id = t.id and m.expires_at < 'infinity' and m.expires_at <= holdfast.now() limit 1)
  union all
  (select from memory m
   where m.tenant_id = t.id and m.scope in ('user', 'agent') and m.created_at < holdfast.now() - $1::interval limit 1)
  limit 1
) has_work
