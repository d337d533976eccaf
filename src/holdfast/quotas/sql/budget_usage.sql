-- Lists what was spent of budgets in their current windows, with what calls in progress have reserved. $3: the window of each limit.
select b.limit_id, b.subject, b.starts_at, b.used, b.warned_at, (
    select coalesce(sum(r.estimate), 0) from budget_reservation r
    where r.tenant_id = $1 and r.limit_id = b.limit_id and r.subject = b.subject and r.starts_at = b.starts_at
  ) as reserved,
  (b.starts_at at time zone 'UTC' + ('1 ' || b.window_unit)::interval) at time zone 'UTC' as resets_at
from (
  select found.*, l.window_unit from unnest($2::uuid[], $3::text[]) as l (id, window_unit)
    cross join lateral (
      select * from budget b where b.tenant_id = $1 and b.limit_id = l.id and b.starts_at = date_trunc(l.window_unit, holdfast.now(), 'UTC')
      order by b.subject limit $4
    ) found
) b
order by b.limit_id, b.subject limit $4
