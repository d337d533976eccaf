-- Stores the skills of a program, with their files.
select * from holdfast.declare_skills($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
