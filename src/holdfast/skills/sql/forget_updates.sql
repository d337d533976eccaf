-- Forgets how often resources have changed that have not for a while.
delete from resource_update u where u.tenant_id = $1 and u.at < holdfast.now() - $2::interval
