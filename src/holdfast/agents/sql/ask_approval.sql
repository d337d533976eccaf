-- Requests approvals for calls.
select holdfast.ask_approval($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
