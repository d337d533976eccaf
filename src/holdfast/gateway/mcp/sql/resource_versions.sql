-- How often resources have changed, given by their digests, and how long ago they did last.
select u.uri_digest, u.version, extract(epoch from holdfast.now() - u.at)::float8 as age from resource_update u
where u.tenant_id = $1 and u.uri_digest = any($2)
