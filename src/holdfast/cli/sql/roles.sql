-- The roles that statements of tenants run as, and whether row-level security would let any of them pass.
select rolname as name, rolsuper or rolbypassrls as bypasses from pg_catalog.pg_roles
where rolname in ('holdfast_app', 'holdfast_system', 'holdfast_tenant')
  or rolname = 'holdfast_engine_' || (select oid from pg_catalog.pg_database where datname = current_database())
order by rolname
