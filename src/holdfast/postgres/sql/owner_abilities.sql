-- Whether this login can create roles, the OID of this database, and whether the engine's login exists with the rights that this
-- login can grant it.
select r.rolsuper or r.rolcreaterole as may_create_roles, d.oid::bigint as database,
  exists (
    select from pg_catalog.pg_roles e where e.rolname = 'holdfast_engine_' || d.oid
      and (not r.rolsuper or pg_catalog.pg_has_role(e.oid, 'pg_use_reserved_connections', 'usage'))
  ) as has_login
from pg_catalog.pg_roles r, pg_catalog.pg_database d
where r.rolname = current_user and d.datname = current_database()
