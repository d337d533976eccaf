-- Lists what model calls used, newest day first.
select day, user_name, agent, model, calls, input_tokens, output_tokens, cost from model_usage
where tenant_id = $1 and day >= (holdfast.now() at time zone 'UTC')::date - $2::int order by day desc, user_name, agent, model limit $3
