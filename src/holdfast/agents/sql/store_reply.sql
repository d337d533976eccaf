-- Stores a reply of the model.
select holdfast.store_reply($1, $2, $3, $4, $5)
