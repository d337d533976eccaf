-- Runs of a user, newest first.
select * from runs where tenant_id = $1 and id < $2 and user_name = $4 order by id desc limit $3
