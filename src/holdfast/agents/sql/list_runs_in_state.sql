-- Runs in one state, newest first, of everyone or of one user: the few that failed are found beside any number that are done.
select * from runs where tenant_id = $1 and id < $2 and state = $4 and ($5::text is null or user_name = $5) order by id desc limit $3
