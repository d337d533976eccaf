-- Links and browser sessions that nobody can use any more; keys stay.
delete from api_key where kind <> 'key' and expires_at < holdfast.now()
