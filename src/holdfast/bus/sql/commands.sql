-- A page of commands in a state ($2) and of a skill ($3), or of all, newest first: those before the command $4.
select
  correlation_id, skill, arguments, reply_to, headers, priority, state, run_at, attempts, max_attempts, worker, leased_until,
  error, created_at, started_at, finished_at
from command
where tenant_id = $1 and ($2::text is null or state = $2) and ($3::text is null or skill = $3) and (
  $4::text is null or (created_at, correlation_id) < (
    select last.created_at, last.correlation_id from command last where last.tenant_id = $1 and last.correlation_id = $4))
order by created_at desc, correlation_id desc limit $5
