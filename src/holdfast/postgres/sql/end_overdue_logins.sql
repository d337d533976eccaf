-- Ends sessions of tenants' logins whose transaction is idle for longer than $1, whose statement takes longer than $2, or that
-- a session other than a tenant's has waited for, for longer than $3. Such sessions can lift the limits that their role starts with.
select a.usename::text as login, pg_catalog.pg_terminate_backend(a.pid) as ended,
  case when blocked.yes then 'it blocks other sessions' when a.state = 'active' then 'its statement takes too long'
    else 'its transaction is idle' end as why
from pg_catalog.pg_stat_activity a
join holdfast.tenant_login l on l.login = a.usename
cross join lateral (
  select exists (
    select from pg_catalog.pg_locks w join pg_catalog.pg_stat_activity v on v.pid = w.pid
    where not w.granted and clock_timestamp() - w.waitstart > $3::interval
      and not exists (select from holdfast.tenant_login o where o.login = v.usename)
      and a.pid = any(pg_catalog.pg_blocking_pids(w.pid))
  ) as yes
) blocked
where a.datname = current_database() and (
  blocked.yes
  or a.state like 'idle in transaction%' and clock_timestamp() - a.state_change > $1::interval
  or a.state = 'active' and clock_timestamp() - a.query_start > $2::interval)
