-- The MCP servers with an address that announce changes of their lists, of all tenants.
select o.host_id, o.name, o.settings -> 'backend' as backend, o.report -> 'announces' as announces
from tool_source o
where o.kind = 'mcp' and o.active and o.location <> '' and o.report -> 'announces' <> '[]'
order by o.host_id, o.name limit $1
