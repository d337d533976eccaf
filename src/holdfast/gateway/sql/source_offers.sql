-- The prompts and resources of all active sources that have some, by name.
select o.name, o.settings -> 'backend' as backend, o.offers
from tool_source o where o.host_id = $1 and o.active and o.offers <> '{}' order by o.name
