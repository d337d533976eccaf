-- Writes terms and vectors of skills or tools ($2). Returns the ids of those whose name and description are unchanged since they were read.
select holdfast.index_registry($1, $2, $3, $4, $5, $6)
