-- Claims due commands, at most `places`, and starts their leases: the highest priority first, then the one that waits longest.
-- `rates`: how many commands of a skill may start per second over all workers, or null for no limit. `attempts`: the maximum attempts of a skill.
-- `passed`: this call locked more commands than it claimed. Other workers may have skipped those, and should claim again.
create or replace function holdfast.claim_commands(
  tenant uuid, skills text[], rates float8[], attempts int[], claimant text, places int, lease interval
) returns table (
  correlation_id text, skill text, arguments json, headers json, attempt int, token bigint, passed boolean
) language plpgsql as $$
#variable_conflict use_column
declare
  allowed int[] := array_fill(places, array[cardinality(skills)]);
  chosen text[];
  seen bigint;
  number int;
  filled float8;
begin
  for number in select place from unnest(skills, rates) with ordinality as given (skill, rate, place) where rate is not null order by given.skill loop
    insert into public.skill_rate as r (tenant_id, skill, per_second, tokens)
      values (tenant, skills[number], rates[number], greatest(rates[number], 1))
      on conflict (tenant_id, skill) do update set
        per_second = excluded.per_second, filled_at = holdfast.now(),
        tokens = least(excluded.tokens, r.tokens + excluded.per_second * greatest(extract(epoch from holdfast.now() - r.filled_at), 0))
      returning tokens into filled;
    allowed[number] := least(places, floor(filled));
  end loop;
  select array_agg(best.correlation_id order by best.rank) filter (where best.rank <= places), count(*)
    from (
      select found.correlation_id, row_number() over (order by found.priority desc, found.run_at, found.correlation_id) as rank
      from unnest(skills, allowed) as given (skill, allowed) cross join lateral (
        select c.correlation_id, c.priority, c.run_at from public.command c
        where c.tenant_id = tenant and c.skill = given.skill and c.state = 'queued' and c.run_at <= holdfast.now()
        order by c.priority desc, c.run_at limit given.allowed for update skip locked
      ) found
    ) best
    into chosen, seen;
  if chosen is null then
    return;
  end if;
  if array_remove(rates, null) <> '{}' then
    update public.skill_rate r set tokens = r.tokens - used.number
      from (
        select c.skill, count(*) as number from public.command c
        where c.tenant_id = tenant and c.correlation_id = any(chosen) group by c.skill
      ) used
      where r.tenant_id = tenant and r.skill = used.skill and rates[array_position(skills, r.skill)] is not null;
  end if;
  return query
    update public.command c set
      state = 'running', token = c.token + 1, attempts = c.attempts + 1, worker = claimant, leased_until = holdfast.now() + lease,
      started_at = coalesce(c.started_at, holdfast.now()),
      max_attempts = coalesce(c.max_attempts, claim_commands.attempts[array_position(skills, c.skill)])
    where c.tenant_id = tenant and c.correlation_id = any(chosen)
    returning c.correlation_id, c.skill, c.arguments, c.headers, c.attempts, c.token, seen > places;
end $$;
revoke execute on function holdfast.claim_commands from public;
grant execute on function holdfast.claim_commands to holdfast_app;
