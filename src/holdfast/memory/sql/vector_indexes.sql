-- Returns the vector indexes of tenants, and whether each is valid. An index whose creation was interrupted is invalid.
select c.relname as name, i.indisvalid as whole
from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'public' and (c.relname ^@ 'memory_nearest_' or c.relname ^@ 'chunk_nearest_') and c.relkind = 'i'
