-- Announces which skills a worker has, and deletes outdated announcements. The commit does not wait for the disk: a lost one is repeated.
with gone as (
  delete from worker_presence where tenant_id = $1 and worker <> $2 and seen_at < holdfast.now() - interval '10 minutes'
)
insert into worker_presence (tenant_id, worker, name, skills)
select $1, $2, $3, $4::text[] from (select set_config('synchronous_commit', 'off', true)) as lazily
on conflict (tenant_id, worker) do update set skills = excluded.skills, seen_at = holdfast.now()
returning worker
