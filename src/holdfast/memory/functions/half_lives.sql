-- Returns how many half-lives a memory has aged since its last use: importance and uses make them longer. `age` is in seconds, `half_life` in
-- days. The retention is 2 to the power of minus this number; memory/retention.py has the same formula. PostgreSQL inlines the function.
create or replace function holdfast.half_lives(age float8, half_life float8, importance float8, uses int) returns float8
language sql immutable parallel safe as $$
  select age / (86400 * half_life * (0.5 + importance) * (1 + ln(1 + uses::float8)))
$$;
revoke execute on function holdfast.half_lives from public;
grant execute on function holdfast.half_lives to holdfast_app;
