-- The name of a UUID.
select name from identity where tenant_id = $1 and kind = $2 and id = $3
