-- Appends what a run has to say.
select * from holdfast.append_in_run($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
