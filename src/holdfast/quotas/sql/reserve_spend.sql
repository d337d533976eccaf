-- Reserves what a model call may spend in all its budgets, or in none: holdfast.reserve_spend
select place, outcome, used, starts_at, resets_in from holdfast.reserve_spend($1, $2, $3, $4::text::jsonb)
