-- Stores the UUID of a name.
select holdfast.store_identity($1, $2, $3, $4)
