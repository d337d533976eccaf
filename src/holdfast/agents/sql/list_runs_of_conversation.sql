-- Lists runs of a conversation, newest first: all, or those in one state.
select * from runs where tenant_id = $1 and id < $2 and root = $4 and ($5::text is null or state = $5) order by number desc limit $3
