-- Deletes runs that ended long ago, some at a time, with all that hangs on them; what was said in them stays.
delete from runs r
using (
  select id from runs
  where tenant_id = $1 and finished_at < holdfast.now() - $2::interval order by finished_at limit $3 for update skip locked
) old
where r.tenant_id = $1 and r.id = old.id
