-- The logins of tenants. Only the owner can call these functions, with its own right to create roles.

-- Creates the role of a tenant's login, or changes its password. It has the rights of its group and cannot switch to another role.
create or replace function holdfast.renew_tenant_login(login text, secret text) returns void language plpgsql as $$
begin
  -- Not an advisory lock: anyone could take one and keep it.
  lock table holdfast.migration in share row exclusive mode;
  if not exists (select from pg_catalog.pg_roles where rolname = login) then
    execute format('create role %I', login);
  end if;
  execute format('alter role %I login password %L', login, secret);
  execute format('grant holdfast_tenant to %I with inherit true, set false', login);
  -- An owner without superuser rights has to be a member of the login to end its sessions.
  if not pg_has_role(login, 'usage') then
    execute format('grant %I to %I with inherit true, set false', login, current_user);
  end if;
end $$;
revoke execute on function holdfast.renew_tenant_login from public;

-- Limits a login. `settings` has names and values; a setting that this owner may not set is skipped.
create or replace function holdfast.limit_tenant_login(login text, connections int, settings jsonb) returns void language plpgsql as $$
declare
  setting record;
begin
  execute format('alter role %I connection limit %s', login, connections);
  for setting in select key, value from jsonb_each_text(settings) loop
    begin
      execute format('alter role %I set %I = %L', login, setting.key, setting.value);
    exception when insufficient_privilege then
      null; -- temp_file_limit, if the owner is not a superuser
    end;
  end loop;
end $$;
revoke execute on function holdfast.limit_tenant_login from public;

-- Ends the sessions of a login and drops it, with the objects that it created: large objects, temporary tables.
create or replace function holdfast.drop_tenant_login(login text) returns void language plpgsql as $$
begin
  if not exists (select from pg_catalog.pg_roles where rolname = login) then
    return;
  end if;
  if not pg_has_role(login, 'usage') then
    execute format('grant %I to %I with inherit true, set false', login, current_user);
  end if;
  perform pg_terminate_backend(a.pid, 5000) from pg_catalog.pg_stat_activity a where a.usename = login;
  execute format('drop owned by %I', login);
  execute format('drop role %I', login);
end $$;
revoke execute on function holdfast.drop_tenant_login from public;
