-- Returns one run.
select * from runs where tenant_id = $1 and id = $2
