-- Schedules the checks of a source that was stored: in $5 seconds, or never. `checked_at`: now if its document was just read.
-- A check that is due earlier stays due.
insert into source_check (host_id, source_id, seconds, file, due_at, checked_at)
select $1, $2, $3::float8, $4, holdfast.now() + $5::float8 * interval '1 second', case when $6 then holdfast.now() end
on conflict (host_id, source_id) do update set
  seconds = excluded.seconds, file = excluded.file,
  due_at = case when excluded.due_at is not null then least(source_check.due_at, excluded.due_at) end,
  error = case when excluded.checked_at is null then source_check.error end,
  failures = case when excluded.checked_at is null then source_check.failures else 0 end,
  checked_at = coalesce(excluded.checked_at, source_check.checked_at)
