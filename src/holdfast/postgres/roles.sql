-- Creates the roles of postgres/tenancy.py if they are missing. Roles belong to the server, so this comes before any migration.
-- The owner can switch to the roles that run statements, but does not inherit their rights.
do $$
declare
  wanted text;
begin
  foreach wanted in array array['holdfast_owner', 'holdfast_app', 'holdfast_system', 'holdfast_tenant'] loop
    if not exists (select from pg_catalog.pg_roles where rolname = wanted) then
      begin
        execute format('create role %I nologin', wanted);
      exception when duplicate_object or unique_violation then
        null; -- another database of this server was migrated at the same time
      end;
    end if;
  end loop;
  if not pg_has_role('holdfast_owner', 'usage') or not pg_has_role('holdfast_app', 'set') or not pg_has_role('holdfast_system', 'set') then
    execute format('grant holdfast_owner to %I with inherit true', current_user);
    execute format('grant holdfast_app, holdfast_system to %I with inherit false, set true', current_user);
  end if;
end $$
