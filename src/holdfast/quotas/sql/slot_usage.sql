-- Lists how many slots of limits on concurrent calls processes hold now, the most first.
select s.limit_id, s.subject, s.slots
from unnest($2::uuid[]) as l (id)
  cross join lateral (
    select s.limit_id, s.subject, sum(s.slots)::float8 as slots from limit_slots s
    where s.tenant_id = $1 and s.limit_id = l.id and s.leased_until > holdfast.now()
    group by s.limit_id, s.subject order by slots desc, s.subject limit $3
  ) s
order by s.slots desc, s.limit_id, s.subject limit $3
