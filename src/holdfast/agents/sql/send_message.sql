-- Sends a message to an agent in one round trip.
select holdfast.send_message($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
