-- The tenant with an id, if it exists.
select id, name, created_at from tenant where id = $1
