-- The logins of all tenants: whether the role exists on this server, its sessions, whether its name contains the tenant's id, as earlier
-- names did, and whether the server limits its temporary files.
select l.login::text, l.tenant_id, t.name as tenant, l.created_at,
  r.oid is not null as usable,
  r.rolconnlimit as most_sessions,
  (select count(*)::int from pg_catalog.pg_stat_activity a where a.usename = l.login) as sessions,
  l.login::text ~ '^hf_[0-9a-f]{32}$' as shows_tenant,
  coalesce(array_to_string(r.rolconfig, ' ') ~ 'temp_file_limit=', false) as temp_files_limited
from holdfast.tenant_login l
join tenant t on t.id = l.tenant_id
left join pg_catalog.pg_roles r on r.rolname = l.login
order by t.name
