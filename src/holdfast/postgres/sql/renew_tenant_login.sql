-- Creates the role of a tenant's login, or changes its password.
select holdfast.renew_tenant_login($1, $2)
