-- The tools of a source, by name, with their security requirements and URLs, and what is pinned of them.
select t.name, t.operation, t.access, t.active, t.gone, t.held, t.request -> 'security' as security, t.request ->> 'url' as url, p.hash, p.warnings
from tool_t t left join tool_pin p on p.host_id = $1 and p.tool_id = t.tool_id
where t.host_id = $1 and t.source_id = $2 order by t.name
