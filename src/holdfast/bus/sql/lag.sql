-- How far groups ($2, or all) are behind, per partition. The positions of the relay to Kafka are included.
-- A member renews its lease three times per lease. One that has missed two renewals may be dead, and `owner` says so.
select
  o.group_name as "group", o.topic, o.partition, o.position, p.next_offset as "end",
  greatest(p.next_offset - o.position, 0) as lag, first.at as oldest, reader.name as owner, o.attempts, o.error,
  o.broker_position
from consumer_offset o
join topic_partition p on p.tenant_id = $1 and p.topic = o.topic and p.partition = o.partition
left join consumer_member m on m.tenant_id = $1 and m.group_name = o.group_name and m.id = o.owner
left join lateral (
  select case
    when m.id is null or holdfast.now() < m.heard_at + (m.leased_until - m.heard_at) * 2 / 3 then m.name
    else format('%s, no heartbeat for %s s', m.name, floor(extract(epoch from holdfast.now() - m.heard_at))) end as name
) reader on true
left join lateral (
  select r.at from record r
  where r.tenant_id = $1 and r.topic = o.topic and r.partition = o.partition and r."offset" >= o.position and p.next_offset > o.position
  order by r."offset" limit 1
) first on true
where o.tenant_id = $1 and ($2::text is null or o.group_name = $2)
order by o.group_name, o.topic, o.partition
