-- Writes terms and vectors of memories, given as JSON with the columns of `memory`. Returns the ids of the memories that were unchanged since
-- they were read; only these are written.
select holdfast.index_memories($1, $2, $3, $4, $5)
