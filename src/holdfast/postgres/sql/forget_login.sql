-- Deletes the record of a tenant's login.
delete from holdfast.tenant_login where tenant_id = $1
