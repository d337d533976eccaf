-- A tenant is looked up by name before there is a tenant to ask for.
select id, name, created_at from tenant where name = $1
