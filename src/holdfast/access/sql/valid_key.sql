-- The principal of a valid key. A link is not a key: it is exchanged for a session first.
select id, tenant_id, principal, scopes, agent from api_key
where hash = $1 and kind in ('key', 'session') and revoked_at is null and (expires_at is null or expires_at > holdfast.now())
