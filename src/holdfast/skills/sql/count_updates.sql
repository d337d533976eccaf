-- Counts a change of resources, given by their digests. The digests are sorted, so that two concurrent statements cannot deadlock.
insert into resource_update (tenant_id, uri_digest)
select $1, digest from unnest($2::bytea[]) as digest, set_config('synchronous_commit', 'off', true)
on conflict (tenant_id, uri_digest) do update set version = resource_update.version + 1, at = excluded.at
