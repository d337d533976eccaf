-- How far groups have read, per partition, in our log and on Kafka. The groups are those of group_gauges.sql, except the relay ($3).
with chosen as materialized (
  select distinct tenant.name as tenant, o.tenant_id, o.group_name, o.topic
  from consumer_offset o join tenant on tenant.id = o.tenant_id
  where $1::uuid is null or o.tenant_id = $1
  order by tenant.name, o.group_name, o.topic limit $2
)
select
  chosen.tenant, chosen.group_name as "group", chosen.topic, o.partition, o.position, p.next_offset as "end", o.broker_position,
  holdfast.now() as now
from chosen
join consumer_offset o on o.tenant_id = chosen.tenant_id and o.group_name = chosen.group_name and o.topic = chosen.topic
join topic_partition p on p.tenant_id = o.tenant_id and p.topic = o.topic and p.partition = o.partition
where chosen.group_name <> $3
