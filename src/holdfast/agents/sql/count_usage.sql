-- Adds the tokens and the cost of model calls outside the steps of a run.
update runs r set input_tokens = r.input_tokens + $4, output_tokens = r.output_tokens + $5, cost = r.cost + $6
where r.tenant_id = $1 and r.id = $2 and r.token = $3 and r.finished_at is null
