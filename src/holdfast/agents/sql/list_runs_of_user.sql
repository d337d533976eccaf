-- Lists runs of a user, newest first: all, or those in one state.
select * from runs where tenant_id = $1 and id < $2 and user_name = $4 and ($5::text is null or state = $5) order by id desc limit $3
