-- Claims partitions that no live member owns, each at a new epoch. The caller has locked the group's row.
-- Counts owners that died: the next record may be the cause, and a record that kills its consumers must not do so forever.
-- `wait`: seconds until the next record may be tried.
drop function if exists holdfast.claim_partitions(uuid, text, uuid, text[], int[], boolean, boolean);
create or replace function holdfast.claim_partitions(
  tenant uuid, "group" text, member uuid, topics text[], numbers int[], from_end boolean
) returns table (
  topic text, partition int, epoch bigint, "position" bigint, broker_position bigint, attempts int, deaths int, on_trial boolean, failing_since timestamptz, wait float8
) language plpgsql as $$
#variable_conflict use_column
begin
  insert into public.consumer_offset (tenant_id, group_name, topic, partition, position)
    select tenant, "group", asked.topic, asked.partition, case when from_end then coalesce(p.next_offset, 0) else 0 end
    from unnest(topics, numbers) as asked (topic, partition)
    left join public.topic_partition p on p.tenant_id = tenant and p.topic = asked.topic and p.partition = asked.partition
    on conflict (tenant_id, group_name, topic, partition) do nothing;
  return query
    update public.consumer_offset o set
      owner = member, epoch = o.epoch + 1, updated_at = holdfast.now(),
      deaths = o.deaths + dead.one,
      error = case when dead.one = 1 then 'its consumer stopped responding' else o.error end
    from unnest(topics, numbers) as asked (topic, partition), lateral (
      select (c.owner is not null and c.owner <> member)::int as one
      from public.consumer_offset c
      where c.tenant_id = tenant and c.group_name = "group" and c.topic = asked.topic and c.partition = asked.partition
    ) dead
    where o.tenant_id = tenant and o.group_name = "group" and o.topic = asked.topic and o.partition = asked.partition
      and (o.owner is null or o.owner = member or not exists (
        select from public.consumer_member m
        where m.tenant_id = tenant and m.group_name = "group" and m.id = o.owner and m.leased_until > holdfast.now()))
    returning o.topic, o.partition, o.epoch, o.position, o.broker_position, o.attempts, o.deaths, o.on_trial, o.failing_since,
      greatest(extract(epoch from o.retry_at - holdfast.now()), 0)::float8;
end $$;
revoke execute on function holdfast.claim_partitions from public;
grant execute on function holdfast.claim_partitions to holdfast_app;
