-- Research of a user, newest first, without the reports: all, or what one agent asked for.
select id, user_name, agent, question, target, model, max_calls, max_tokens, max_cost, calls, tokens, cost, state, events, null::jsonb as report, error,
  created_at, started_at, finished_at
from research where tenant_id = $1 and id < $2 and user_name = $4 and ($5::text is null or agent = $5) order by id desc limit $3
