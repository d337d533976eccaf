-- Positions for a group that has none, at the start or at the end ($4) of every partition of these topics.
insert into consumer_offset (tenant_id, group_name, topic, partition, position)
select $1, $2, p.topic, p.partition, case when $4 then p.next_offset else 0 end
from topic_partition p where p.tenant_id = $1 and p.topic = any($3)
on conflict (tenant_id, group_name, topic, partition) do nothing
