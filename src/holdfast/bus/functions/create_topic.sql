-- Creates a topic with its counters, unless it exists. Returns its number of partitions.
create or replace function holdfast.create_topic(tenant uuid, topic text, wanted int, out number int) language plpgsql as $$
begin
  select t.partitions from public.topic t where t.tenant_id = tenant and t.name = create_topic.topic into create_topic.number;
  if create_topic.number is not null then
    return;
  end if;
  insert into public.topic (tenant_id, name, partitions) values (tenant, create_topic.topic, wanted)
    on conflict (tenant_id, name) do nothing returning partitions into create_topic.number;
  if create_topic.number is null then  -- another session created it meanwhile, with its counters
    select t.partitions from public.topic t where t.tenant_id = tenant and t.name = create_topic.topic into create_topic.number;
    return;
  end if;
  insert into public.topic_partition (tenant_id, topic, partition)
    select tenant, create_topic.topic, n from generate_series(0, wanted - 1) as n;
end $$;
revoke execute on function holdfast.create_topic from public;
grant execute on function holdfast.create_topic to holdfast_app;

-- Removes a topic, its records and the positions of its groups. Returns whether it existed.
create or replace function holdfast.remove_topic(tenant uuid, topic text) returns boolean language plpgsql as $$
#variable_conflict use_column
declare
  removed boolean;
begin
  delete from public.topic t where t.tenant_id = tenant and t.name = remove_topic.topic;
  removed := found;
  delete from public.record r where r.tenant_id = tenant and r.topic = remove_topic.topic;
  delete from public.consumer_offset o where o.tenant_id = tenant and o.topic = remove_topic.topic;
  return removed;
end $$;
revoke execute on function holdfast.remove_topic from public;
grant execute on function holdfast.remove_topic to holdfast_app;
