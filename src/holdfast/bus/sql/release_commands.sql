-- Gives back claimed commands that are not done. The attempt does not count.
update command c set state = 'queued', attempts = c.attempts - 1, worker = null, leased_until = null
from unnest($2::text[], $3::bigint[]) as held (id, token)
where c.tenant_id = $1 and c.correlation_id = any($2) and c.correlation_id = held.id and c.state = 'running' and c.token = held.token
