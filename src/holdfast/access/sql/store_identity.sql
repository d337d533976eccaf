-- Stores the uuid of a name.
select holdfast.store_identity($1, $2, $3, $4)
