-- The redriven dead letters of a group, in partitions ($3, $4) that the asking member owns.
select d.topic, d.partition, d."offset", d.at, d.record_id as id, d.key, d.headers, d.value, d.id as dead_letter
from dead_letter d
where d.tenant_id = $1 and d.group_name = $2 and d.state = 'redriven' and d.correlation_id is null
  and (d.topic, d.partition) in (select * from unnest($3::text[], $4::int[]))
order by d.id limit 20
