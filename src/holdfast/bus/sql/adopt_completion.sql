-- Applies what came before the command it answers was known; whether there was anything.
select holdfast.adopt_completion($1, $2)
