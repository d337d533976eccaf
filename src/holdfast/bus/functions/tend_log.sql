-- Creates daily partitions of the records for today and some days ahead, and drops old ones that nobody needs. For the owner role.
-- A day is kept until all recently active groups, and the relay to Kafka if one ran recently, have read it.
-- If `record_other` already has records of a day, they stay there, and are deleted one by one when they are old.
-- Readers and producers wait while a day is created or dropped. So this function waits only briefly for its locks, and leaves `skipped` days to
-- the next run.
create or replace function holdfast.tend_log(ahead int, retention interval, forget interval, out made int, out dropped int, out skipped int)
language plpgsql as $$
declare
  today date := (holdfast.now() at time zone 'utc')::date;
  day date;
  child regclass;
  needed boolean;
  old regclass[] := '{}';
  relayed boolean := exists (select from public.relay_lease l where l.leased_until > holdfast.now() - forget);
begin
  made := 0;
  dropped := 0;
  skipped := 0;
  set local lock_timeout = '200ms';
  set local timezone = 'utc';
  begin
    -- One process at a time. Only the owner can take this lock; any login could take an advisory lock and keep it.
    lock table holdfast.migration in share update exclusive mode nowait;
  exception when lock_not_available then
    return;
  end;
  delete from public.record_other r where r.at < holdfast.now() - retention and not exists (
    select from public.consumer_offset o
    left join public.consumer_group g on g.tenant_id = o.tenant_id and g.name = o.group_name
    where o.tenant_id = r.tenant_id and o.topic = r.topic and o.partition = r.partition and o.position <= r."offset"
      and (g.seen_at > holdfast.now() - forget or (g.name is null and relayed)));
  for child, day in
    select c.oid::regclass, to_date(right(c.relname, 8), 'YYYYMMDD') from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'public.record'::regclass and c.relname ~ '^record_\d{8}$' order by c.relname
  loop
    continue when day + 1 > (holdfast.now() - retention) at time zone 'utc';
    execute format($q$
      select exists (
        select from public.consumer_offset o
        left join public.consumer_group g on g.tenant_id = o.tenant_id and g.name = o.group_name
        where (g.seen_at > holdfast.now() - $1 or (g.name is null and $2)) and exists (
          select from %s r where r.tenant_id = o.tenant_id and r.topic = o.topic and r.partition = o.partition and r."offset" >= o.position))
      $q$, child) using forget, relayed into needed;
    if not needed then
      old := old || child;
    end if;
  end loop;
  foreach child in array old loop
    begin
      execute format('drop table %s', child);
      dropped := dropped + 1;
    exception when lock_not_available then
      skipped := skipped + 1;
    end;
  end loop;
  for day in select today + n from generate_series(0, ahead) as n loop
    if to_regclass(format('public.record_%s', to_char(day, 'YYYYMMDD'))) is null then
      begin
        execute format('create table public.record_%s partition of public.record for values from (%L) to (%L)', to_char(day, 'YYYYMMDD'), day, day + 1);
        made := made + 1;
      exception
        when check_violation then
          null;
        when lock_not_available then
          skipped := skipped + 1;
      end;
    end if;
  end loop;
end $$;
revoke execute on function holdfast.tend_log from public;
