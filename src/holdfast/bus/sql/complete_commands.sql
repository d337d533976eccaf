-- Completes commands. Returns for each answer whether it is applied, its requested topic, and the topic on which it was published.
select * from holdfast.complete_commands($1, $2, $3, $4, $5, $6, $7, $8, $9)
