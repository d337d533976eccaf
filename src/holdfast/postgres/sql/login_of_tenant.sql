-- The login of a tenant, if it has one. Locks the row.
select login::text from holdfast.tenant_login where tenant_id = $1 for update
