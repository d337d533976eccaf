-- Lets a research that failed or was cancelled go on, with the answers that it has, and with a larger budget if one is given.
update research r set state = 'queued', leased_until = null, stop = false, error = null, report = null, finished_at = null,
  max_calls = greatest(r.max_calls, $3), max_tokens = greatest(r.max_tokens, $4)
where r.tenant_id = $1 and r.id = $2 and r.state in ('failed', 'cancelled')
