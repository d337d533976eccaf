-- The next records of partitions ($2, $3), each from its offset ($4): at most $5 records and about $6 bytes, shared by the partitions that have any.
-- The first record of each partition is taken first, in random order of partitions, so that none starves. The first record may exceed $6.
-- `ends`: the end of the record's partition.
with ready as materialized (
  select asked.*, p.next_offset as ends, random() as turn, count(*) over () as number
  from unnest($2::text[], $3::int[], $4::bigint[]) as asked (topic, partition, start)
  join topic_partition p on p.tenant_id = $1 and p.topic = asked.topic and p.partition = asked.partition and p.next_offset > asked.start
)
select topic, partition, "offset", at, id, key, headers, value, bytes, ends
from (
  select found.*, ready.ends, row_number() over fairly as rank, sum(found.bytes) over fairly - found.bytes as before
  from ready cross join lateral (
    select r.*, row_number() over (order by r."offset") as place from record r
    where r.tenant_id = $1 and r.topic = ready.topic and r.partition = ready.partition and r."offset" >= ready.start
    order by r."offset" limit greatest($5 / ready.number, 1)
  ) found
  window fairly as (order by found.place, ready.turn rows unbounded preceding)
) page
where rank <= $5 and before < $6::bigint
order by topic, partition, "offset"
