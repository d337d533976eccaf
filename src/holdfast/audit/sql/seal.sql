-- Moves open entries into the chain, at most so many.
select holdfast.seal_audit($1, $2)
