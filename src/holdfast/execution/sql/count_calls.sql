-- Adds to the usage counts of tools, in one batch and in the order of their ids, so that two writers cannot deadlock. Skips tools that were removed in
-- the meantime. The commit does not wait for the disk.
insert into tool_usage (host_id, tool_id, calls, failures, total_ms, last_called)
select $1, t.tool_id, given.calls, given.failures, given.total_ms, holdfast.now()
from unnest($2::uuid[], $3::bigint[], $4::bigint[], $5::double precision[]) as given (id, calls, failures, total_ms)
  join tool_t t on t.host_id = $1 and t.tool_id = given.id and t.tool_id = any($2::uuid[])
  cross join (select set_config('synchronous_commit', 'off', true)) as lazily
order by t.tool_id
on conflict (host_id, tool_id) do update
  set calls = tool_usage.calls + excluded.calls, failures = tool_usage.failures + excluded.failures, total_ms = tool_usage.total_ms + excluded.total_ms,
    last_called = excluded.last_called
returning tool_usage.tool_id
