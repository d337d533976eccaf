-- Claims a conversation for a turn, or a place in the queue for it.
select * from holdfast.claim_turn($1, $2, $3, $4, $5)
