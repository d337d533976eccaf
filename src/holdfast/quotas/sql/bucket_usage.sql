-- Lists how much is left of limits on requests, as of now: what no process has leased. $2: the limits, with the rate and the capacity of each. Of each
-- limit come the subjects that have the least left. Full buckets are swept, so that few others are read.
select b.limit_id, b.subject, b.level
from unnest($2::uuid[], $3::float8[], $4::float8[]) as l (id, rate, capacity)
  cross join lateral (
    select b.limit_id, b.subject,
      least(l.capacity, b.level + l.rate * greatest(0, extract(epoch from holdfast.now() - b.updated_at))) as level
    from limit_bucket b where b.tenant_id = $1 and b.limit_id = l.id order by level, b.subject limit $5
  ) b
order by b.level / l.capacity, b.limit_id, b.subject limit $5
