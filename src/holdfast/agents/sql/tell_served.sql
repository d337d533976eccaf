-- Reports which agents a process serves, and removes processes without a report for ten minutes. The commit does not wait for the disk.
with gone as (
  delete from worker_presence where tenant_id = $1 and worker <> $2 and seen_at < holdfast.now() - interval '10 minutes'
)
insert into worker_presence (tenant_id, worker, name, skills, agents)
select $1, $2, $3, '{}', $4::text[] from (select set_config('synchronous_commit', 'off', true)) as lazily
on conflict (tenant_id, worker) do update set agents = excluded.agents, seen_at = holdfast.now()
returning worker
