-- The tools that a worker may serve: functions with the mode `event`; and of the other tools that do not have the mode `inline`, those that it declares, by
-- kind ($3), source ($4) or name ($5).
select t.tool_id, t.name, t.implementation_type as kind, t.implementation_class as reference
from tool_t t left join tool_source o on o.host_id = $1 and o.source_id = t.source_id
where t.host_id = $1 and t.active and not t.held and o.active is not false
  and case when t.implementation_type = 'function' then t.mode = 'event'
    else t.mode is distinct from 'inline' and t.implementation_type <> 'java'
      and (t.implementation_type = any($3::text[]) or o.name like any($4::text[]) or t.name like any($5::text[])) end
order by t.name limit $2
