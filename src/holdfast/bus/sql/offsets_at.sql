-- The first offset of each partition ($3) from a time ($4) on, or its end if there is none or no time is given.
select p.partition, coalesce(found."offset", p.next_offset) as "offset"
from topic_partition p
left join lateral (
  select r."offset" from record r
  where r.tenant_id = $1 and r.topic = $2 and r.partition = p.partition and r.at >= $4
  order by r."offset" limit 1
) found on true
where p.tenant_id = $1 and p.topic = $2 and p.partition = any($3)
