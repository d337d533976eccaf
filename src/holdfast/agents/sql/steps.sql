-- Lists the steps of a run after $3, in order, at most $4.
select number, sent, reply, started_at, replied_at from run_step where tenant_id = $1 and run_id = $2 and number > $3
order by number limit $4
