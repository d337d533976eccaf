-- The steps of a run, in order.
select number, sent, reply, started_at, replied_at from run_step where tenant_id = $1 and run_id = $2 order by number
