-- Deletes a batch of runs that ended long ago, with everything that refers to them. Nodes stay.
delete from runs r
using (
  select id from runs
  where tenant_id = $1 and finished_at < holdfast.now() - $2::interval order by finished_at limit $3 for update skip locked
) old
where r.tenant_id = $1 and r.id = old.id
