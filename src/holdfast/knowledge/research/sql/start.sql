-- Stores a research. With a holder, it is that process that works on it. Of two with the same id, only the first is stored.
insert into research (tenant_id, id, user_name, agent, question, target, model, max_calls, max_tokens, max_cost, state, holder, leased_until, epoch,
  claims, started_at)
select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, case when $11::uuid is null then 'queued' else 'running' end, $11, holdfast.now() + $12::interval,
  case when $11 is null then 0 else 1 end, case when $11 is null then 0 else 1 end, case when $11 is not null then holdfast.now() end
on conflict (tenant_id, id) do nothing
returning *
