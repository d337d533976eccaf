-- Replaces reservations by what was spent, and returns the budgets whose warning is due: holdfast.settle_spend
select place, used from holdfast.settle_spend($1, $2, $3::text::jsonb)
