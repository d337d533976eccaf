-- The vector indexes that tenants have of their own, and whether each is whole: one whose making was broken off is not.
select c.relname as name, i.indisvalid as whole
from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'public' and c.relname ^@ 'memory_nearest_' and c.relkind = 'i'
