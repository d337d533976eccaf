-- Whether an API key was ever created. Links and sessions do not count.
select exists (select from api_key where kind = 'key')
