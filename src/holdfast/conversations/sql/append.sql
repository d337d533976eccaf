-- Appends a node in one round trip. The result is one composite value: a function in `from` would go through a tuplestore.
select holdfast.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
