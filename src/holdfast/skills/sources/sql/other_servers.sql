-- The MCP servers among the sources but one, by name, with their settings.
select o.name, o.settings -> 'backend' -> 'mcp' as mcp
from tool_source o where o.host_id = $1 and o.kind = 'mcp' and o.active and o.name <> $2 order by o.name
