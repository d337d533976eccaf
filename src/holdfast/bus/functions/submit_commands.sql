-- Stores commands, and publishes the invocations of those that have a value: a foreign command is on its topic already.
-- A known correlation id with the same skill and arguments is the same command, and nothing happens. `same` is false if they differ.
-- `any(ids)` in addition to the join, here and in the other functions, makes the plan use the primary key even without statistics of the table.
-- Rows are written in the order of their ids, so that two batches that share some do not deadlock.
create or replace function holdfast.submit_commands(
  tenant uuid, ids text[], skills text[], arguments json[], replies text[], headers json[], hashes bigint[], priorities int[],
  attempts int[], moments timestamptz[], delays interval[], topic text, records uuid[], heads json[], "values" json[], sizes int[]
) returns table (correlation_id text, created boolean, same boolean) language plpgsql as $$
#variable_conflict use_column
declare
  fresh text[];
  places bigint[];
begin
  with stored as (
    insert into public.command (
      tenant_id, correlation_id, skill, arguments, reply_to, headers, hash, priority, max_attempts, run_at)
    select tenant, given.id, skills[place], submit_commands.arguments[place], replies[place], submit_commands.headers[place],
      hashes[place], priorities[place], submit_commands.attempts[place], coalesce(moments[place], holdfast.now() + delays[place], holdfast.now())
    from unnest(ids) with ordinality as given (id, place) order by given.id, place
    on conflict (tenant_id, correlation_id) do nothing returning correlation_id
  )
  select array_agg(stored.correlation_id) from stored into fresh;
  select array_agg(first.place) from (
    select distinct on (given.id) place from unnest(ids) with ordinality as given (id, place)
    where given.id = any(fresh) and "values"[place] is not null order by given.id, place
  ) first into places;
  if places is not null then
    perform holdfast.publish_all(
      tenant, array_agg(topic order by place), array_agg(hashes[place] order by place), array_agg(ids[place] order by place),
      array_agg(records[place] order by place), array_agg(heads[place] order by place), array_agg("values"[place] order by place),
      array_agg(sizes[place] order by place))
    from unnest(places) as place;
  end if;
  return query
    select given.id, given.id = any(coalesce(fresh, '{}')),
      c.skill = given.skill and c.arguments::jsonb = submit_commands.arguments[given.place]::jsonb
    from unnest(ids, skills) with ordinality as given (id, skill, place)
    join public.command c on c.tenant_id = tenant and c.correlation_id = given.id and c.correlation_id = any(ids)
    order by given.place;
end $$;
revoke execute on function holdfast.submit_commands from public;
grant execute on function holdfast.submit_commands to holdfast_app;
