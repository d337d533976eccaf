-- Direct calls whose lease has expired although a worker has answered: the caller never read the answer.
select e.id, e.tool, e.correlation_id, e.leased_until, a.correlation_id as command, a.result, a.error
from tool_executions e
  join command_completion a on a.tenant_id = $1 and a.applied
    and a.correlation_id in (e.correlation_id, e.correlation_id || '#2', e.correlation_id || '#3')
where e.tenant_id = $1 and e.run_id is null and e.status = 'running' and e.leased_until <= holdfast.now()
  and (a.error is null or a.error ->> 'code' not in ('cancelled', 'lost'))
order by e.leased_until limit $2
