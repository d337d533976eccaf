-- Returns all tenants.
select t.id from tenant t order by t.id
