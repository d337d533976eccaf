-- The connection of a user with a source. `seconds_left` is null if the server has not said when its token expires.
-- `age`: the seconds since its tokens are known; `lifetime`: for how many they were good then.
select c.source_id, c.sealed, c.key_id, c.origin, c.generation, c.refreshable, c.broken,
  extract(epoch from c.expires_at - holdfast.now())::float8 as seconds_left, extract(epoch from holdfast.now() - c.updated_at)::float8 as age,
  extract(epoch from c.expires_at - c.updated_at)::float8 as lifetime
from source_connection c join tool_source o on o.host_id = $1 and o.source_id = c.source_id
where c.host_id = $1 and o.name = $2 and o.active and c.user_name = $3
