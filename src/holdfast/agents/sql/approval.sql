-- Returns one approval.
select * from approval where tenant_id = $1 and id = $2
