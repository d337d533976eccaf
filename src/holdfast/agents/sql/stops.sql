-- Which of the runs that a process holds should stop.
select r.id, r.stop from runs r join unnest($2::uuid[], $3::bigint[]) as held (id, token) on r.id = held.id and r.token = held.token
where r.tenant_id = $1 and r.id = any($2) and r.state = 'running'
