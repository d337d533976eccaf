-- How often resources have changed, given by their digests.
select u.uri_digest, u.version from resource_update u where u.tenant_id = $1 and u.uri_digest = any($2)
