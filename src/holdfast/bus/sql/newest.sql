-- The newest records of partitions ($3) of a topic ($2), each before an end ($4), ordered by time: at most $5 records and about $6 bytes.
select counted.topic, counted.partition, counted."offset", counted.at, counted.id, counted.key, counted.headers, counted.value
from (
  select found.*, sum(found.bytes) over (order by found.at desc, found.partition desc, found."offset" desc) - found.bytes as after
  from unnest($3::int[], $4::bigint[]) as asked (partition, "end")
  cross join lateral (
    select r.* from record r
    where r.tenant_id = $1 and r.topic = $2 and r.partition = asked.partition and r."offset" < asked."end"
    order by r."offset" desc limit $5
  ) found
  order by found.at desc, found.partition desc, found."offset" desc limit $5
) counted
where counted.after = 0 or counted.after < $6::bigint
order by counted.at, counted.partition, counted."offset"
