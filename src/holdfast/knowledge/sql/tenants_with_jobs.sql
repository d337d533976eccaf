-- Returns the tenants that have open jobs, and when the first is due, by an index lookup per tenant.
select t.id, first.due_at, first.due_at <= holdfast.now() as is_due, greatest(extract(epoch from first.due_at - holdfast.now()), 0)::float8 as seconds
from tenant t, lateral (
  select j.due_at from ingest_job j where j.tenant_id = t.id and j.state in ('pending', 'running') order by j.due_at limit 1
) first
