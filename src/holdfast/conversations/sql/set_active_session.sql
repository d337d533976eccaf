-- Makes a session the active one, and returns the one that is active now.
select * from holdfast.activate_session($1, $2, $3, $4, $5, $6, $7, $8)
