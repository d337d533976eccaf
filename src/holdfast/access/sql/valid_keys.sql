-- Which of these keys are valid, and whose they are: those who stay are looked at again and again, all at once.
select hash, tenant_id, principal, scopes, agent from api_key
where hash = any($1::bytea[]) and kind in ('key', 'session') and revoked_at is null
  and (expires_at is null or expires_at > holdfast.now())
