-- The imports that changed tools of a source, newest first.
select i.* from source_import i
where i.host_id = $1 and i.source_id = (select o.source_id from tool_source o where o.host_id = $1 and o.name = $2)
order by i.revision desc limit $3
