-- The tables in a backup, quoted for use in a statement.
select format('%I.%I', n.nspname, c.relname) as name
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname in ('public', 'holdfast') and c.relkind = 'r'
order by 1
