-- The tools of a source, by name, with their security requirements and URLs.
select t.name, t.operation, t.access, t.active, t.gone, t.request -> 'security' as security, t.request ->> 'url' as url
from tool_t t where t.host_id = $1 and t.source_id = $2 order by t.name
