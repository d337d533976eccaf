-- Gives the lease on indexing the tenant's memories back, if it is still ours.
delete from memory_indexing where tenant_id = $1 and holder = $2
