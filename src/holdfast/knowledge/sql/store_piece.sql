-- Stores a piece of a file that is being uploaded.
select holdfast.store_piece($1, $2, $3, $4)
