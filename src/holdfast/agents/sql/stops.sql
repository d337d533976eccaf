-- Returns which runs of a process have to stop: because somebody asked for it, or because the process does not hold them any more. A run that waits
-- or has just ended is not reported: its holder did that and is about to notice. A run that ended a while ago is.
select held.id, case
  when r.id is null or r.token <> held.token or r.finished_at < holdfast.now() - interval '10 seconds' then 'lapsed'
  when r.state = 'running' then r.stop
end as stop
from unnest($2::uuid[], $3::bigint[]) as held (id, token)
left join runs r on r.tenant_id = $1 and r.id = held.id
