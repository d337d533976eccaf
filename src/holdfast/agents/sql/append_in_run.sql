-- Stores what a run does: the model's reply, calls that start, the outcome of a call, and new nodes.
select * from holdfast.append_in_run($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
  $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32)
