-- Settles lapsed reservations of a tenant, and deletes a batch of rows that no longer count: holdfast.sweep_quotas
select holdfast.sweep_quotas($1, $2, $3)
