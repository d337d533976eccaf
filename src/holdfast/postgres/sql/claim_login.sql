-- The login of a tenant: the one that it has, otherwise this new one.
insert into holdfast.tenant_login (tenant_id, login) values ($1, $2)
on conflict (tenant_id) do update set tenant_id = excluded.tenant_id returning login::text
