-- Makes a session the active one, and answers with the one in force.
select * from holdfast.activate_session($1, $2, $3, $4, $5, $6, $7, $8)
