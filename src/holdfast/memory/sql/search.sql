-- Returns the best matches of a query for each owner; several owners in one round trip.
select * from holdfast.search_memories(
  $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27)
