-- The next records of one partition ($2, $3) from an offset ($4), as `fetch` returns them for several: at most $5 records and about $6 bytes.
-- `ends` is the offset after the record: a page that is not full contains all there are.
select topic, partition, "offset", at, id, key, headers, value, bytes, "offset" + 1 as ends
from (
  select found.*, sum(found.bytes) over (order by found."offset" rows unbounded preceding) - found.bytes as before
  from (
    select r.* from record r
    where r.tenant_id = $1 and r.topic = $2 and r.partition = $3 and r."offset" >= $4 order by r."offset" limit $5
  ) found
) page
where before < $6::bigint
order by "offset"
