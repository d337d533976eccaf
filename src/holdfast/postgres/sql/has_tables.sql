-- Whether the schemas that a backup fills have tables or views, ours or others.
select exists (
  select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where n.nspname in ('public', 'holdfast') and c.relkind in ('r', 'p', 'v')
    and not exists (select from pg_catalog.pg_depend d where d.objid = c.oid and d.deptype = 'e')
)
