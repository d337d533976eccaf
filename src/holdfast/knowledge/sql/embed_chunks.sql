-- Stores the vectors of chunks.
select holdfast.embed_chunks($1, $2, $3, $4, $5, $6, $7)
