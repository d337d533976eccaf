-- Ends a browser session: the user signs out.
update api_key set revoked_at = holdfast.now() where hash = $1 and kind = 'session' and revoked_at is null
