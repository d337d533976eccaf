-- Lists what was spent of budgets in their current windows, with what calls in progress have reserved, the most first. $3: the window of each limit,
-- $4: its amount.
select b.limit_id, b.subject, b.starts_at, b.used, b.warned_at, b.ends_at as resets_at, (
    select coalesce(sum(r.estimate), 0) from budget_reservation r
    where r.tenant_id = $1 and r.limit_id = b.limit_id and r.subject = b.subject and r.starts_at = b.starts_at
  ) as reserved
from (
  select found.*, l.amount from unnest($2::uuid[], $3::text[], $4::float8[]) as l (id, window_unit, amount)
    cross join lateral (
      select * from budget b where b.tenant_id = $1 and b.limit_id = l.id and b.starts_at = date_trunc(l.window_unit, holdfast.now(), 'UTC')
      order by b.used desc, b.subject limit $5
    ) found
) b
order by b.used / b.amount desc, b.limit_id, b.subject limit $5
