-- Deletes expired links and browser sessions. Keys are kept.
delete from api_key where kind <> 'key' and expires_at < holdfast.now()
