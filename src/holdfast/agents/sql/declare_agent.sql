-- Stores an agent of an app.
select holdfast.declare_agent($1, $2, $3, $4, $5, $6, $7, $8)
