-- A research.
select * from research where tenant_id = $1 and id = $2
