-- Keeps a claim, and tells whether its turn has come or was interrupted.
select * from holdfast.renew_turn($1, $2, $3, $4)
