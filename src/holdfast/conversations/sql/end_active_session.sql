-- Ends a session, for one user or for whoever has it.
select holdfast.end_session($1, $2, $3)
