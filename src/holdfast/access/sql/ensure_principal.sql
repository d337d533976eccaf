-- Records that a principal may act in the tenant. An owner stays an owner.
insert into principal (tenant_id, name, role) values ($1, $2, $3)
on conflict (tenant_id, name) do update set role = excluded.role, version = principal.version + 1
where principal.role = 'member' and excluded.role = 'owner'
