-- Lets searches use an index no longer.
delete from memory_index where tenant_id = $1 and model = $2
