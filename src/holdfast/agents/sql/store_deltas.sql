-- Stores streamed text, for watchers in other processes. The node follows, so the commit does not wait for the disk.
insert into turn_delta (tenant_id, root, run_id, n, kind, data)
select $1, $2, $3, given.n, given.kind, given.data from unnest($5::bigint[], $6::text[], $7::jsonb[]) as given (n, kind, data),
  set_config('synchronous_commit', 'off', true)
where exists (select from runs r where r.tenant_id = $1 and r.id = $3 and r.token = $4 and r.finished_at is null)
on conflict do nothing
