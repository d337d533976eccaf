-- Whether this login can make others, the number that names this database within its server, and whether the engine's login is there.
select r.rolsuper or r.rolcreaterole as may_create_roles, d.oid::bigint as database,
  exists (select from pg_catalog.pg_roles where rolname = 'holdfast_engine_' || d.oid) as has_login
from pg_catalog.pg_roles r, pg_catalog.pg_database d
where r.rolname = current_user and d.datname = current_database()
