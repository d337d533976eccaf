-- When the record at an offset, or the first after it, was published; where it does not exist yet, a time that none can be before.
select coalesce(first.at, p.last_at) as at, first.at is not null as known
from topic_partition p
left join lateral (
  select r.at from record r
  where r.tenant_id = $1 and r.topic = $2 and r.partition = $3 and r."offset" >= $4
  order by r."offset" limit 1
) first on true
where p.tenant_id = $1 and p.topic = $2 and p.partition = $3
