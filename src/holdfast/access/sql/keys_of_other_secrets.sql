-- The number of valid keys that were created under another secret, which this installation cannot verify.
select count(*) from api_key
where kind = 'key' and secret_id <> $1 and revoked_at is null and (expires_at is null or expires_at > holdfast.now())
