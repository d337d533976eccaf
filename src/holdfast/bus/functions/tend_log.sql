-- Makes a partition of the records for today and for some days ahead, and drops those that are old and that nobody needs. For the owner.
-- A day is kept while a group that someone has read with of late (or the relay to Kafka) is not behind it.
-- A day that `record_other` has records of already stays there: they are deleted one by one when they are old.
create or replace function holdfast.tend_log(ahead int, retention interval, forget interval, out made int, out dropped int) language plpgsql as $$
declare
  today date := (holdfast.now() at time zone 'utc')::date;
  day date;
  child regclass;
  needed boolean;
begin
  made := 0;
  dropped := 0;
  if not pg_try_advisory_xact_lock(7238451907) then  -- another process is at it
    return;
  end if;
  set local lock_timeout = '5s';
  set local timezone = 'utc';
  for day in select today + n from generate_series(0, ahead) as n loop
    if to_regclass(format('public.record_%s', to_char(day, 'YYYYMMDD'))) is null then
      begin
        execute format('create table public.record_%s partition of public.record for values from (%L) to (%L)', to_char(day, 'YYYYMMDD'), day, day + 1);
        made := made + 1;
      exception when check_violation then
        null;
      end;
    end if;
  end loop;
  for child, day in
    select c.oid::regclass, to_date(right(c.relname, 8), 'YYYYMMDD') from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'public.record'::regclass and c.relname ~ '^record_\d{8}$' order by c.relname
  loop
    continue when day + 1 > (holdfast.now() - retention) at time zone 'utc';
    execute format($q$
      select exists (
        select from public.consumer_offset o
        left join public.consumer_group g on g.tenant_id = o.tenant_id and g.name = o.group_name
        where (g.name is null or g.seen_at > holdfast.now() - $1) and exists (
          select from %s r where r.tenant_id = o.tenant_id and r.topic = o.topic and r.partition = o.partition and r."offset" >= o.position))
      $q$, child) using forget into needed;
    if not needed then
      execute format('drop table %s', child);
      dropped := dropped + 1;
    end if;
  end loop;
  delete from public.record_other r where r.at < holdfast.now() - retention and not exists (
    select from public.consumer_offset o
    left join public.consumer_group g on g.tenant_id = o.tenant_id and g.name = o.group_name
    where o.tenant_id = r.tenant_id and o.topic = r.topic and o.partition = r.partition and o.position <= r."offset"
      and (g.name is null or g.seen_at > holdfast.now() - forget));
end $$;
revoke execute on function holdfast.tend_log from public;
