-- Returns how well a day matches the dates of a query: 1 within a span, decreasing before and after it. The same formula as in memory/dates.py.
-- A `yearly` span is in every year; its days are numbered as if every month had 31 days.
create or replace function holdfast.date_value(day date, firsts int[], lasts int[], yearly boolean[], fades float8[]) returns float8
language plpgsql immutable parallel safe as $$
declare
  best float8 := 0;
  away int;
  ordinal constant int := day - date '0001-01-01' + 1;
  of_year constant int := 31 * (extract(month from day)::int - 1) + extract(day from day)::int;
begin
  for place in 1 .. cardinality(firsts) loop
    if yearly[place] then
      away := mod(mod(of_year - firsts[place], 372) + 372, 372);
      away := case when away <= lasts[place] - firsts[place] then 0
        else least(away - (lasts[place] - firsts[place]), 372 - away) end;
    else
      away := greatest(0, firsts[place] - ordinal, ordinal - lasts[place]);
    end if;
    best := greatest(best, exp(-least(away / fades[place], 700)));
  end loop;
  return best;
end $$;
revoke execute on function holdfast.date_value from public;
grant execute on function holdfast.date_value to holdfast_app;
