-- The tenants that have research which waits, or whose holder has died.
select distinct r.tenant_id as id from research r
where r.state in ('queued', 'running') and (r.leased_until is null or r.leased_until <= holdfast.now())
