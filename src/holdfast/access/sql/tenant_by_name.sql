-- The tenant with a name. This runs before the tenant of a request is known.
select id, name, created_at from tenant where name = $1
