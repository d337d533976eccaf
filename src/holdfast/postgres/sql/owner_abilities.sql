-- Whether this login can make others, the number that names this database within its server, and whether the engine's login is
-- there, with what this login can give it.
select r.rolsuper or r.rolcreaterole as may_create_roles, d.oid::bigint as database,
  exists (
    select from pg_catalog.pg_roles e where e.rolname = 'holdfast_engine_' || d.oid
      and (not r.rolsuper or pg_catalog.pg_has_role(e.oid, 'pg_use_reserved_connections', 'usage'))
  ) as has_login
from pg_catalog.pg_roles r, pg_catalog.pg_database d
where r.rolname = current_user and d.datname = current_database()
