-- Deletes the change counts of resources that have not changed for a while.
delete from resource_update u where u.tenant_id = $1 and u.at < holdfast.now() - $2::interval
