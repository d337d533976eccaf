-- Releases the lease on indexing the tenant's memories, if this process still holds it.
delete from memory_indexing where tenant_id = $1 and holder = $2
