-- Cancels a research: at once if nobody works on it, else by its holder.
update research r set stop = r.state = 'running', state = case when r.state = 'queued' then 'cancelled' else r.state end,
  finished_at = case when r.state = 'queued' then holdfast.now() end, leased_until = case when r.state = 'running' then r.leased_until end
where r.tenant_id = $1 and r.id = $2 and r.state in ('queued', 'running')
