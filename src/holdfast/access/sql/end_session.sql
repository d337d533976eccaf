-- A browser signs out: its session ends now.
update api_key set revoked_at = holdfast.now() where hash = $1 and kind = 'session' and revoked_at is null
