-- The state that a conversation sees: its own, its user's and its app's. One row without a name shows that the conversation exists.
select null as name, null::jsonb as value, null::bigint as version
from conversation where tenant_id = $1 and id = $2
union all
select case s.scope when 'session' then s.key else s.scope || ':' || s.key end, s.value, s.version
from conversation c join state s on s.tenant_id = $1 and (s.scope, s.owner, s.app_name) in (
  ('session', c.id, ''), ('user', c.user_id, c.app_name), ('app', c.tenant_id, c.app_name))
where c.tenant_id = $1 and c.id = $2 and s.value is not null
