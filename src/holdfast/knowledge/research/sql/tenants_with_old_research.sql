-- The tenants that have research to forget.
select distinct r.tenant_id as id from research r where r.finished_at < holdfast.now() - $1::interval
