-- One command.
select
  correlation_id, skill, arguments, reply_to, headers, priority, state, run_at, attempts, max_attempts, worker, leased_until,
  error, created_at, started_at, finished_at
from command where tenant_id = $1 and correlation_id = $2
