-- Makes or renews a login that is a member of the given roles. The owner alone may call it, with its own right to make roles.
-- The engine's login inherits nothing: it may only become one of its roles. A tenant's login is its group's member,
-- and cannot use up the server's connections.
create or replace function holdfast.ensure_login(login text, secret text, roles text[], inherits boolean) returns void language plpgsql as $$
declare
  granted text;
begin
  -- Two engines that start at once would make the same login. An advisory lock could be taken by anyone, for good.
  lock table holdfast.migration in share row exclusive mode;
  if not exists (select from pg_catalog.pg_roles where rolname = login) then
    execute format('create role %I', login);
  end if;
  execute format('alter role %I login password %L connection limit %s', login, secret, case when inherits then 50 else -1 end);
  foreach granted in array roles loop
    execute format('grant %I to %I with inherit %s, set %s', granted, login, inherits::text, (not inherits)::text);
  end loop;
end $$;
revoke execute on function holdfast.ensure_login from public;
