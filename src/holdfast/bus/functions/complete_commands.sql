-- Finishes commands whose rows the caller has locked: stores the completions, and publishes a record for each on its reply topic, or on
-- the usual topic if that does not exist. With `published`, the answers were read from the log and are not published again.
create or replace function holdfast.settle_commands(
  tenant uuid, ids text[], completions uuid[], results json[], errors json[], workers text[], states text[], usual text, published boolean
) returns void language plpgsql as $$
#variable_conflict use_column
begin
  insert into public.command_completion (tenant_id, correlation_id, id, applied, result, error, worker)
    select tenant, ids[place], completions[place], true, results[place], errors[place], workers[place] from generate_subscripts(ids, 1) as place;
  update public.command c set
      state = states[given.place], finished_at = holdfast.now(), leased_until = null,
      error = case when errors[given.place] is null then null else errors[given.place] ->> 'message' end
    from unnest(ids) with ordinality as given (id, place)
    where c.tenant_id = tenant and c.correlation_id = given.id and c.correlation_id = any(ids);
  if published or cardinality(ids) = 0 then
    return;
  end if;
  perform holdfast.publish_all(
      tenant, array_agg(told.topic), array_agg(told.hash), array_agg(told.id), array_agg(holdfast.uuid7()), array_agg(told.head),
      array_agg(told.value), array_agg(octet_length(told.value::text) + octet_length(told.head::text) + octet_length(told.id) + 100))
    from (
      select given.id, c.hash, coalesce(t.name, usual) as topic,
        case when errors[given.place] is null then json_build_object('correlationId', given.id, 'result', results[given.place])
          else json_build_object('correlationId', given.id, 'error', errors[given.place]) end as value,
        json_strip_nulls(json_build_object(
          'content-type', 'application/json', 'holdfast-schema', 'skill-completion/1.0.0', 'holdfast-completion', completions[given.place],
          'traceparent', c.headers -> 'traceparent', 'tracestate', c.headers -> 'tracestate')) as head
      from unnest(ids) with ordinality as given (id, place)
      join public.command c on c.tenant_id = tenant and c.correlation_id = given.id and c.correlation_id = any(ids)
      left join public.topic t on t.tenant_id = tenant and t.name = c.reply_to
      order by given.place
    ) told;
end $$;
revoke execute on function holdfast.settle_commands from public;
grant execute on function holdfast.settle_commands to holdfast_app;

-- Completes commands, each with the token of its claim. A foreign worker has no token, and its answer applies to any unfinished command.
-- Late and duplicate answers are stored, but change nothing. An answer with an id that is already stored is the same answer.
create or replace function holdfast.complete_commands(
  tenant uuid, ids text[], tokens bigint[], completions uuid[], results json[], errors json[], workers text[], usual text, published boolean
) returns table (id uuid, applied boolean, reply_to text, topic text) language plpgsql as $$
#variable_conflict use_column
declare
  due bigint[];
begin
  perform from public.command c where c.tenant_id = tenant and c.correlation_id = any(ids) order by c.correlation_id for update;
  select coalesce(array_agg(first.place), '{}') from (
      select distinct on (given.id) given.place from unnest(ids, tokens) with ordinality as given (id, token, place)
      join public.command c on c.tenant_id = tenant and c.correlation_id = given.id and c.correlation_id = any(ids)
      where case when given.token is null then c.state in ('queued', 'running') else c.state = 'running' and c.token = given.token end
      order by given.id, given.place
    ) first into due;
  insert into public.command_completion (tenant_id, correlation_id, id, applied, result, error, worker)
    select tenant, ids[place], completions[place], false, results[place], errors[place], workers[place]
    from generate_subscripts(ids, 1) as place where place <> all(due)
    on conflict (tenant_id, correlation_id, id) do nothing;
  if due <> '{}' then
    perform holdfast.settle_commands(
        tenant, array_agg(ids[place]), array_agg(completions[place]), array_agg(results[place]), array_agg(errors[place]),
        array_agg(workers[place]), array_agg(case when errors[place] is null then 'done' else 'failed' end), usual, published)
      from unnest(due) as place;
  end if;
  return query
    select a.id, a.applied, c.reply_to, case when a.applied and not published then coalesce(t.name, usual) end
    from unnest(ids, completions) as given (correlation_id, id)
    join public.command_completion a on a.tenant_id = tenant and a.correlation_id = given.correlation_id and a.id = given.id
      and a.correlation_id = any(ids)
    left join public.command c on c.tenant_id = tenant and c.correlation_id = given.correlation_id and c.correlation_id = any(ids)
    left join public.topic t on t.tenant_id = tenant and t.name = c.reply_to;
end $$;
revoke execute on function holdfast.complete_commands from public;
grant execute on function holdfast.complete_commands to holdfast_app;

-- Applies the completion that came before its command was known, if there is one: a foreign worker may be faster than our reader.
-- Returns whether one was applied.
create or replace function holdfast.adopt_completion(tenant uuid, command text) returns boolean language plpgsql as $$
#variable_conflict use_column
declare
  early public.command_completion;
begin
  select a.* from public.command_completion a where a.tenant_id = tenant and a.correlation_id = command order by a.at, a.id limit 1 into early;
  if early.id is null then
    return false;
  end if;
  update public.command c set
      state = case when early.error is null then 'done' else 'failed' end, finished_at = early.at, error = early.error ->> 'message'
    where c.tenant_id = tenant and c.correlation_id = command and c.state = 'queued';
  if found then
    update public.command_completion a set applied = true where a.tenant_id = tenant and a.correlation_id = command and a.id = early.id;
  end if;
  return found;
end $$;
revoke execute on function holdfast.adopt_completion from public;
grant execute on function holdfast.adopt_completion to holdfast_app;
