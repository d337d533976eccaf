-- Creates or renews the engine's login, a member of the given roles. Only the owner can call it, with its own right to create roles.
-- The login inherits nothing: it can only switch to one of its roles. If the server reserves connections, the login can use them.
create or replace function holdfast.ensure_login(login text, secret text, roles text[]) returns void language plpgsql as $$
declare
  granted text;
begin
  -- Two engines that start at once would create the same login. Not an advisory lock: anyone could take one and keep it.
  lock table holdfast.migration in share row exclusive mode;
  if not exists (select from pg_catalog.pg_roles where rolname = login) then
    execute format('create role %I', login);
  end if;
  execute format('alter role %I login password %L', login, secret);
  foreach granted in array roles loop
    execute format('grant %I to %I with inherit false, set true', granted, login);
  end loop;
  begin
    execute format('grant pg_use_reserved_connections to %I with inherit true, set false', login);
  exception when insufficient_privilege then
    null; -- an administrator can grant it: docs/access.md
  end;
end $$;
revoke execute on function holdfast.ensure_login from public;
drop function if exists holdfast.ensure_login(text, text, text[], boolean);
