-- Renews the leases of commands, each if its token is still the newest. Returns those commands.
update command c set leased_until = holdfast.now() + $4
from unnest($2::text[], $3::bigint[]) as held (id, token)
where c.tenant_id = $1 and c.correlation_id = any($2) and c.correlation_id = held.id and c.state = 'running' and c.token = held.token
returning c.correlation_id
