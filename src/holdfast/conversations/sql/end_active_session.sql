-- Ends a session, for one user or for all.
select holdfast.end_session($1, $2, $3)
