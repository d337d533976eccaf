-- Lists runs in one state, newest first, of all users or of one. The index finds the few failed runs among any number of finished ones.
select * from runs where tenant_id = $1 and id < $2 and state = $4 and ($5::text is null or user_name = $5) order by id desc limit $3
