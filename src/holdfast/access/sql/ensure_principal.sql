-- Someone may act in the tenant; who became its owner stays so.
insert into principal (tenant_id, name, role) values ($1, $2, $3)
on conflict (tenant_id, name) do update set role = excluded.role, version = principal.version + 1
where principal.role = 'member' and excluded.role = 'owner'
