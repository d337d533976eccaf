-- The roles that run the statements of tenants, and whether each of them bypasses row-level security.
select rolname as name, rolsuper or rolbypassrls as bypasses from pg_catalog.pg_roles
where rolname in ('holdfast_app', 'holdfast_system', 'holdfast_tenant')
  or rolname = 'holdfast_engine_' || (select oid from pg_catalog.pg_database where datname = current_database())
order by rolname
