-- Writes words and vectors of memories, given as JSON with the columns of `memory`.
select holdfast.index_memories($1, $2, $3)
