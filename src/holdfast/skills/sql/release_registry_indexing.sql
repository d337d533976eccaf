-- Gives the lease on indexing the tenant's skills and tools back, if it is still ours.
delete from registry_indexing where host_id = $1 and holder = $2
