-- Valid keys that this installation's secret cannot recognise.
select count(*) from api_key
where kind = 'key' and secret_id <> $1 and revoked_at is null and (expires_at is null or expires_at > holdfast.now())
