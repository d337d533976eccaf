-- A tenant has no login any more.
delete from holdfast.tenant_login where tenant_id = $1
