-- How often resources, given by their digests, have changed, and how many seconds ago they last did.
select u.uri_digest, u.version, extract(epoch from holdfast.now() - u.at)::float8 as age from resource_update u
where u.tenant_id = $1 and u.uri_digest = any($2)
