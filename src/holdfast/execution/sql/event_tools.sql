-- The tools whose calls go to workers: those with the mode `event`, and those without a mode, except functions and Java tools.
select t.tool_id, t.name, t.implementation_type as kind, t.implementation_class as reference
from tool_t t left join tool_source o on o.host_id = $1 and o.source_id = t.source_id
where t.host_id = $1 and t.active and o.active is not false
  and (t.mode = 'event' or t.mode is null and t.implementation_type not in ('function', 'java'))
order by t.name limit $2
