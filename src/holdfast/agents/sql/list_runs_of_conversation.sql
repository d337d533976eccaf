-- Runs of a conversation, newest first.
select * from runs where tenant_id = $1 and id < $2 and root = $4 order by number desc limit $3
