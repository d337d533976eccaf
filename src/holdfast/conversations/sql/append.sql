-- Appends a node in one round trip. The answer is one value of several parts: a function in `from` would go through a store of rows.
select holdfast.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
