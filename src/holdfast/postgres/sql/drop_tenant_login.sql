-- End the sessions of a tenant's login and remove its role.
select holdfast.drop_tenant_login($1)
