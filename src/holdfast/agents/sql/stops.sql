-- Which of the runs that a process holds should stop: when somebody wants it, or when they are not its own any more. One that has just
-- ended, or waits, was brought to that by its holder, who is about to notice; not so one that ended a while ago.
select held.id, case
  when r.id is null or r.token <> held.token or r.finished_at < holdfast.now() - interval '10 seconds' then 'lapsed'
  when r.state = 'running' then r.stop
end as stop
from unnest($2::uuid[], $3::bigint[]) as held (id, token)
left join runs r on r.tenant_id = $1 and r.id = held.id
