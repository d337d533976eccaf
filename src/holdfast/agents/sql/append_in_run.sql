-- Writes down what a run does: that tools begin, what one of them gave, and what is said.
select * from holdfast.append_in_run($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
  $20, $21, $22, $23, $24)
