-- Creates monthly partitions of the audit for the current and some coming months, and drops those in which everything is older than `retention`.
-- Entries that are not in the chain yet are in none of them. For the owner role. A chain whose oldest entries are dropped gets a checkpoint: the
-- number and hash of the last of them, which an entry of the chain repeats. So nobody can remove entries and say that retention did.
-- Readers and writers wait while a month is created or dropped. So this function waits only briefly for its locks, and leaves `skipped`
-- months to the next run.
create or replace function holdfast.tend_audit(ahead int, retention interval, out made int, out dropped int, out skipped int)
language plpgsql as $$
declare
  this_month timestamp := date_trunc('month', holdfast.now() at time zone 'utc');
  past timestamp := date_trunc('month', (holdfast.now() - retention) at time zone 'utc');
  month timestamp;
  child text;
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
  for child in
    select right(c.relname, 6) from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'public.audit'::regclass and c.relname ~ '^audit_\d{6}$' and to_date(right(c.relname, 6), 'YYYYMM') < past order by 1
  loop
    begin
      perform holdfast.checkpoint_audit(to_date(child, 'YYYYMM') + interval '1 month');
      execute format('drop table public.audit_%s, public.audit_person_%1$s', child);
      dropped := dropped + 1;
    exception when lock_not_available then
      skipped := skipped + 1;
    end;
  end loop;
  if exists (select from public.audit_other o where o.sealed_at < past) then
    perform holdfast.checkpoint_audit(past);
    delete from public.audit_other o where o.sealed_at < past;
    delete from public.audit_person_other o where o.sealed_at < past;
  end if;
  for month in select this_month + make_interval(months => n) from generate_series(0, ahead) as n loop
    child := to_char(month, 'YYYYMM');
    -- If `audit_other` has entries of the month, they stay there. To try nevertheless would lock it, and read all of it.
    if to_regclass('public.audit_' || child) is null and not exists (
      select from public.audit_other o where o.sealed_at >= month and o.sealed_at < month + interval '1 month') then
      begin
        execute format('create table public.audit_%s partition of public.audit for values from (%L) to (%L)', child, month, month + interval '1 month');
        execute format(
          'create table public.audit_person_%s partition of public.audit_person for values from (%L) to (%L)', child, month, month + interval '1 month');
        made := made + 1;
      exception
        when check_violation then
          null; -- they came in the meantime
        when lock_not_available then
          skipped := skipped + 1;
      end;
    end if;
  end loop;
end $$;
revoke execute on function holdfast.tend_audit from public;

-- Gives the chains of all tenants a checkpoint before entries that were sealed before `until` are dropped.
create or replace function holdfast.checkpoint_audit(until timestamp) returns void language plpgsql as $$
declare
  found record;
begin
  for found in
    select c.tenant_id, l.seq, l.hash from public.audit_chain c, lateral (
      select a.seq, a.hash from public.audit a where a.tenant_id = c.tenant_id and a.seq > c.checkpoint_seq and a.sealed_at < until at time zone 'utc'
      order by a.seq desc limit 1) l
    order by c.tenant_id
  loop
    update public.audit_chain c set checkpoint_seq = found.seq, checkpoint_hash = found.hash where c.tenant_id = found.tenant_id;
    insert into public.audit_open (tenant_id, id, entry) values (found.tenant_id, holdfast.uuid7(), json_build_object(
      'action', 'audit.retention', 'target', found.seq || ':' || encode(found.hash, 'hex'), 'outcome', 'done'));
  end loop;
end $$;
revoke execute on function holdfast.checkpoint_audit from public;
