-- Make the role of a tenant's login, or give it this password.
select holdfast.renew_tenant_login($1, $2)
