-- Revokes a key. A key that is already revoked keeps the time of its revocation.
update api_key set revoked_at = coalesce(revoked_at, holdfast.now()) where tenant_id = $1 and id = $2
returning id, kind, tenant_id, principal, agent, label, scopes, created_at, expires_at, revoked_at
