-- All tenants.
select id, name, created_at from tenant order by name
