-- The tools that go to workers: those that say so, and those that call others and do not say otherwise.
select t.tool_id, t.name, t.implementation_type as kind, t.implementation_class as reference
from tool_t t left join tool_source o on o.host_id = $1 and o.source_id = t.source_id
where t.host_id = $1 and t.active and o.active is not false
  and (t.mode = 'event' or t.mode is null and t.implementation_type not in ('function', 'java'))
order by t.name limit $2
