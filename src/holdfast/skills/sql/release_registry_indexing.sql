-- Releases the lease on indexing the tenant's skills and tools, if this process still holds it.
delete from registry_indexing where host_id = $1 and holder = $2
