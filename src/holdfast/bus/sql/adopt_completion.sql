-- Applies the completion that came before its command was known. Returns whether there was one.
select holdfast.adopt_completion($1, $2)
