-- A tenant that somebody names by its id: does it exist?
select id, name, created_at from tenant where id = $1
