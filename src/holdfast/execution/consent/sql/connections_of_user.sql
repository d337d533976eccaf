-- The sources that need the consent of users, by name, each with this user's connection.
select o.source_id, o.name, o.title, o.settings -> 'backend' as backend, c.source_id is not null as connected, c.key_id, c.issuer, c.scopes,
  c.broken, c.refreshable, c.connected_at, c.updated_at, c.expires_at <= holdfast.now() as expired
from tool_source o left join source_connection c on c.host_id = $1 and c.source_id = o.source_id and c.user_name = $2
where o.host_id = $1 and o.active and o.settings -> 'backend' -> 'identity' ->> 'kind' = 'user' order by o.name
