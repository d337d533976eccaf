-- Writes words and vectors of memories, given as JSON with the columns of `memory`; the ids of those that were as they had been read.
select holdfast.index_memories($1, $2, $3, $4)
