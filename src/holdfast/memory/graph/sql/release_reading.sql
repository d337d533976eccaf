-- Gives the lease back.
update graph_reading r set holder = null where r.tenant_id = $1 and r.holder = $2
