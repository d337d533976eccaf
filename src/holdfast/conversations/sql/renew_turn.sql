-- Renews a claim; returns whether it holds the conversation, and whether it was interrupted.
select * from holdfast.renew_turn($1, $2, $3, $4)
