-- The MCP servers with an address that announce changes of their lists, of all tenants. Those that need the consent of users are not listened to:
-- nobody has agreed to that.
select o.host_id, o.name, o.settings -> 'backend' as backend, o.report -> 'announces' as announces
from tool_source o
where o.kind = 'mcp' and o.active and o.location <> '' and o.report -> 'announces' <> '[]'
  and o.settings -> 'backend' -> 'identity' ->> 'kind' is distinct from 'user'
order by o.host_id, o.name limit $1
