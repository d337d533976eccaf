-- A key ends now; one that has ended keeps its time.
update api_key set revoked_at = coalesce(revoked_at, holdfast.now()) where tenant_id = $1 and id = $2
returning id, kind, tenant_id, principal, agent, label, scopes, created_at, expires_at, revoked_at
