-- Lists runs, newest first: ids rise with time.
select * from runs where tenant_id = $1 and id < $2 order by id desc limit $3
