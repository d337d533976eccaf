-- Lists tenants with runs that ended long ago, with one index lookup for each.
select t.id from tenant t, lateral (
  select from runs r where r.tenant_id = t.id and r.finished_at < holdfast.now() - $1::interval limit 1
) has_work
