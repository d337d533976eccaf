-- A role that runs statements and that row-level security does not restrict: it bypasses it, or sees what the owner sees.
select rolname from pg_catalog.pg_roles
where rolname in (current_user, 'holdfast_app')
  and (rolsuper or rolbypassrls or pg_catalog.pg_has_role(oid, 'holdfast_owner', 'usage'))
limit 1
