-- Ends a session, for one user or for whoever has it; whether there was one to end.
select holdfast.end_session($1, $2, $3, $4)
