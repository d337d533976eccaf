-- Lists how many slots of limits on concurrent calls processes hold now.
select s.limit_id, s.subject, sum(s.slots)::float8 as slots
from unnest($2::uuid[]) as l (id)
  cross join lateral (
    select * from limit_slots s where s.tenant_id = $1 and s.limit_id = l.id and s.leased_until > holdfast.now() order by s.subject limit $3
  ) s
group by s.limit_id, s.subject order by s.limit_id, s.subject limit $3
