-- Moves the relay's positions past the records that the broker has acknowledged, in shares that this process still holds ($8, $9, $10).
-- A topic that was removed is skipped, even if a new one has its name. The commit does not wait for the disk: a position that is lost in a crash
-- only means that records are sent twice.
insert into consumer_offset as o (tenant_id, group_name, topic, partition, position)
select given.tenant_id, $1, given.topic, given.partition, given.position
from unnest($2::uuid[], $3::text[], $4::uuid[], $5::int[], $6::int[], $7::bigint[]) as given (tenant_id, topic, topic_id, partition, share, position)
join topic t on t.tenant_id = given.tenant_id and t.name = given.topic and t.id = given.topic_id
join relay_lease l on l.share = given.share and l.holder = $8
join unnest($9::int[], $10::bigint[]) as mine (share, epoch) on mine.share = l.share and mine.epoch = l.epoch
cross join (select set_config('synchronous_commit', 'off', true)) as lazily
order by given.tenant_id, given.topic, given.partition
on conflict (tenant_id, group_name, topic, partition) do update set position = greatest(o.position, excluded.position), updated_at = holdfast.now()
