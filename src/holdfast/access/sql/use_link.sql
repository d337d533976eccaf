-- Uses a one-time link: only the statement that revokes it gets a row.
update api_key set revoked_at = holdfast.now()
where hash = $1 and kind = 'link' and revoked_at is null and expires_at > holdfast.now()
returning tenant_id, principal, scopes
