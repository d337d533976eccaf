-- The principals of those keys that are valid. The server checks the keys of open connections regularly, all in one statement.
select hash, id, tenant_id, principal, scopes, agent from api_key
where hash = any($1::bytea[]) and kind in ('key', 'session') and revoked_at is null
  and (expires_at is null or expires_at > holdfast.now())
