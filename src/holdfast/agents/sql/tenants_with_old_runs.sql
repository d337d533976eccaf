-- Tenants with runs that ended long ago: one look at the index each.
select t.id from tenant t, lateral (
  select from runs r where r.tenant_id = t.id and r.finished_at < holdfast.now() - $1::interval limit 1
) has_work
