-- When the record at an offset, or the first one after it, was published. If there is none yet, the earliest time that it can have.
select coalesce(first.at, p.last_at) as at, first.at is not null as known
from topic_partition p
left join lateral (
  select r.at from record r
  where r.tenant_id = $1 and r.topic = $2 and r.partition = $3 and r."offset" >= $4
  order by r."offset" limit 1
) first on true
where p.tenant_id = $1 and p.topic = $2 and p.partition = $3
