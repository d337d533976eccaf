-- Limits a tenant's login: connections, and settings by name.
select holdfast.limit_tenant_login($1, $2, $3)
