-- Ends the sessions of a tenant's login and drops its role.
select holdfast.drop_tenant_login($1)
