-- Approves or denies a call.
select holdfast.decide_approval($1, $2, $3, $4, $5)
