-- All sources, by name, with the numbers of their tools, of their held definitions and of their skipped operations.
select o.*, c.checked_at, c.error, counted.tools, proposed.held, jsonb_array_length(coalesce(o.report -> 'skipped', '[]')) as skipped
from tool_source o left join source_check c on c.host_id = $1 and c.source_id = o.source_id cross join lateral (
  select count(*) as tools from tool_t t where t.host_id = $1 and t.source_id = o.source_id and not t.gone
) counted cross join lateral (
  select count(*) as held from tool_proposal r where r.host_id = $1 and r.source_id = o.source_id and r.state in ('open', 'rejected')
) proposed
where o.host_id = $1 order by o.name
