-- Assigns a conversation without a user to the user who continues it. Also updates a row that is already the user's.
update conversation set app_name = $3, user_id = $4, user_name = $5
where tenant_id = $1 and id = $2 and (user_id is null and app_name in ($3, 'default') or app_name = $3 and user_id = $4)
