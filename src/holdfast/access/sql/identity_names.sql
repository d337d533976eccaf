-- The names of UUIDs.
select id, name from identity where tenant_id = $1 and kind = $2 and id = any($3::uuid[])
