-- Unregisters a vector index, so that searches no longer use it.
delete from memory_index where tenant_id = $1 and indexed = $2 and model = $3
