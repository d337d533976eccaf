-- The state of a user in an app.
select key, value from state
where tenant_id = $1 and scope = 'user' and app_name = $2 and owner = $3 and value is not null
