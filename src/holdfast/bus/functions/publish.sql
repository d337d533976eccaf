-- Appends a record to its topic in the caller's transaction. Returns nulls if the topic does not exist.
-- `hash`: the hash of the key, which determines the partition. The partition's counter is locked until the commit, so publish last.
create or replace function holdfast.publish(
  tenant uuid, topic text, hash bigint, key text, id uuid, headers json, value json, bytes int,
  out partition int, out "offset" bigint, out at timestamptz
) language plpgsql as $$
#variable_conflict use_column
begin
  select (hash % t.partitions)::int from public.topic t where t.tenant_id = tenant and t.name = publish.topic into publish.partition;
  if not found then
    return;
  end if;
  update public.topic_partition p set next_offset = p.next_offset + 1, last_at = greatest(p.last_at, holdfast.now())
    where p.tenant_id = tenant and p.topic = publish.topic and p.partition = publish.partition
    returning p.next_offset - 1, p.last_at into publish."offset", publish.at;
  if not found then  -- the topic was removed meanwhile
    publish.partition := null;
    return;
  end if;
  insert into public.record (tenant_id, topic, partition, "offset", at, id, key, headers, value, bytes)
    values (tenant, publish.topic, publish.partition, publish."offset", publish.at, publish.id, publish.key, publish.headers, publish.value, publish.bytes);
end $$;
revoke execute on function holdfast.publish from public;
grant execute on function holdfast.publish to holdfast_app;

-- Appends many records, each to its topic. Records whose topic does not exist are missing in the answer.
-- Counters are locked in a fixed order, so that two batches that share partitions do not deadlock.
create or replace function holdfast.publish_all(
  tenant uuid, topics text[], hashes bigint[], keys text[], ids uuid[], headers json[], "values" json[], sizes int[]
) returns table (topic text, id uuid, partition int, "offset" bigint, at timestamptz) language plpgsql as $$
#variable_conflict use_column
declare
  slot record;
  first bigint;
  moment timestamptz;
begin
  for slot in
    select t.name as topic, (given.hash % t.partitions)::int as number, count(*) as size, array_agg(given.place order by given.place) as places
    from unnest(topics, hashes) with ordinality as given (topic, hash, place)
    join public.topic t on t.tenant_id = tenant and t.name = given.topic
    group by 1, 2 order by 1, 2
  loop
    update public.topic_partition p set next_offset = p.next_offset + slot.size, last_at = greatest(p.last_at, holdfast.now())
      where p.tenant_id = tenant and p.topic = slot.topic and p.partition = slot.number
      returning p.next_offset - slot.size, p.last_at into first, moment;
    continue when not found;  -- the topic was removed meanwhile
    return query
      insert into public.record as r (tenant_id, topic, partition, "offset", at, id, key, headers, value, bytes)
      select tenant, slot.topic, slot.number, first + chosen.rank - 1, moment,
        ids[chosen.place], keys[chosen.place], publish_all.headers[chosen.place], publish_all."values"[chosen.place], sizes[chosen.place]
      from unnest(slot.places) with ordinality as chosen (place, rank)
      returning r.topic, r.id, r.partition, r."offset", r.at;
  end loop;
end $$;
revoke execute on function holdfast.publish_all from public;
grant execute on function holdfast.publish_all to holdfast_app;
