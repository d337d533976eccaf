-- Stores a part of the words of a document.
select holdfast.insert_chunk_terms($1, $2, $3, $4, $5)
