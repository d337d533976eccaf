-- Resources have changed once more, given by their digests, in order: two who count the same do not lock one another out.
insert into resource_update (tenant_id, uri_digest)
select $1, digest from unnest($2::bytea[]) as digest, set_config('synchronous_commit', 'off', true)
on conflict (tenant_id, uri_digest) do update set version = resource_update.version + 1, at = excluded.at
