-- Writes words and vectors of skills or tools ($2); the ids of those whose names and descriptions are still what was read.
select holdfast.index_registry($1, $2, $3, $4, $5, $6)
