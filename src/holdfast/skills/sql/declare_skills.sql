-- Stores the skills of an app, with their files.
select * from holdfast.declare_skills($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
