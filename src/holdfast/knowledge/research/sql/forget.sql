-- Removes research that ended long ago.
delete from research where tenant_id = $1 and id = any(array(
  select r.id from research r where r.tenant_id = $1 and r.finished_at < holdfast.now() - $2::interval limit $3))
