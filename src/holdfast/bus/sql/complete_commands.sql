-- Answers commands; of each answer, whether it counts, where it was to be published and where it was.
select * from holdfast.complete_commands($1, $2, $3, $4, $5, $6, $7, $8, $9)
