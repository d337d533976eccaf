-- Limit what a tenant's login takes: connections, and settings by their names.
select holdfast.limit_tenant_login($1, $2, $3)
