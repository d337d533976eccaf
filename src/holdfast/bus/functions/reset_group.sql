-- Sets a group's positions, if it has no active members. Returns done, busy or missing. Consumers look up the positions on Kafka again.
create or replace function holdfast.reset_group(tenant uuid, "group" text, topic text, partitions int[], positions bigint[]) returns text language plpgsql as $$
#variable_conflict use_column
begin
  perform from public.consumer_group g where g.tenant_id = tenant and g.name = "group" for update;
  if not found then
    return 'missing';
  end if;
  if exists (select from public.consumer_member m where m.tenant_id = tenant and m.group_name = "group" and m.leased_until > holdfast.now()) then
    return 'busy';
  end if;
  insert into public.consumer_offset as o (tenant_id, group_name, topic, partition, position)
    select tenant, "group", reset_group.topic, asked.partition, asked.position from unnest(partitions, positions) as asked (partition, position)
    on conflict (tenant_id, group_name, topic, partition) do update set
      position = excluded.position, broker_position = null, owner = null, epoch = o.epoch + 1,
      attempts = 0, deaths = 0, on_trial = false, failing_since = null, retry_at = null, error = null, updated_at = holdfast.now();
  return 'done';
end $$;
revoke execute on function holdfast.reset_group from public;
grant execute on function holdfast.reset_group to holdfast_app;
