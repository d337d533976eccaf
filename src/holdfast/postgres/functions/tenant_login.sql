-- The logins of tenants. The owner alone may call these, with its own right to make roles.

-- Makes the role of a tenant's login, or gives it another password. It has its group's rights and can become nobody else.
create or replace function holdfast.renew_tenant_login(login text, secret text) returns void language plpgsql as $$
begin
  -- An advisory lock could be taken by anyone, for good.
  lock table holdfast.migration in share row exclusive mode;
  if not exists (select from pg_catalog.pg_roles where rolname = login) then
    execute format('create role %I', login);
  end if;
  execute format('alter role %I login password %L', login, secret);
  execute format('grant holdfast_tenant to %I with inherit true, set false', login);
  -- An owner who is no superuser ends the login's sessions as a member of it.
  if not pg_has_role(login, 'usage') then
    execute format('grant %I to %I with inherit true, set false', login, current_user);
  end if;
end $$;
revoke execute on function holdfast.renew_tenant_login from public;

-- Limits what a login takes of the server. `settings` are names and values; one that this owner may not set is left out.
create or replace function holdfast.limit_tenant_login(login text, connections int, settings jsonb) returns void language plpgsql as $$
declare
  setting record;
begin
  execute format('alter role %I connection limit %s', login, connections);
  for setting in select key, value from jsonb_each_text(settings) loop
    begin
      execute format('alter role %I set %I = %L', login, setting.key, setting.value);
    exception when insufficient_privilege then
      null; -- temp_file_limit, on a server where the owner is no superuser
    end;
  end loop;
end $$;
revoke execute on function holdfast.limit_tenant_login from public;

-- Ends a login's sessions and removes it, with what it made: large objects, temporary tables.
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
