-- Whether a key was ever made: links and sessions do not count.
select exists (select from api_key where kind = 'key')
