-- Removes all research of a user.
delete from research where tenant_id = $1 and user_name = $2
