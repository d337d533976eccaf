-- Claims a conversation for a turn, or a place in its queue.
select * from holdfast.claim_turn($1, $2, $3, $4, $5)
