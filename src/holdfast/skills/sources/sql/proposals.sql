-- The proposed definitions of tools in some states ($3), of one source or of all, by source and tool.
select r.name, o.name as source, r.state, r.hash, r.pinned, r.old, r.new, r.warnings, r.found_at, r.found_by, r.decided_at, r.decided_by
from tool_proposal r join tool_source o on o.host_id = $1 and o.source_id = r.source_id
where r.host_id = $1 and ($2::text is null or o.name = $2) and r.state = any($3::text[])
order by o.name, r.name, r.found_at desc limit $4
