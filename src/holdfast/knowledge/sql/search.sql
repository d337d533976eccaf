-- Returns the chunks of documents that match a query best, in one round trip.
select * from holdfast.search_knowledge($1, $2, $3, $4, $5, $6, null, null, $7, $8, $9, $10, $11, $12, $13)
