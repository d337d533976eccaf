-- Appends nodes that belong together, in one round trip.
select * from holdfast.append_all($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
